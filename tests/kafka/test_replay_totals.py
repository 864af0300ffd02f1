"""``rivermouth replay`` of totals on real parts: never in place, and into another table once."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.errors import ReplayRefused
from tests.faults.outcomes import went_well
from tests.kafka.replaying import problems, replay
from tests.lake import Lake, bid, totals_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MOST = 2**63 - 1
"""The greatest sum; two of them do not fit."""


def totals(lake: Lake, table: str) -> dict[int, tuple[int, int]]:
    rows = lake.rows(table)
    found = {each["auction"]: (each["n"], each["spent"]) for each in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.thorough
def test_totals_of_ranges_go_into_another_table_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic, table = "replay-totals", "gold.replay_totals"
    lake.topic(topic, 2)
    lake.configure(p=totals_pipeline(topic))
    lake.produce(topic, [(None, bid(1, 10), 0), (None, bid(2, MOST), 0), (None, bid(3, 5), 1)])
    went_well(lake.run(rivermouth_spark, "p"))
    lake.produce(topic, [(None, bid(1, 20), 1), (None, bid(2, 1), 0), (None, b"{oops", 0)])
    went_well(lake.run(rivermouth_spark, "p"))
    right = {1: (2, 30), 2: (1, MOST), 3: (1, 5)}
    assert totals(lake, table) == right
    with pytest.raises(ReplayRefused, match="mode aggregate cannot be replayed in place") as said:
        replay(lake, rivermouth_spark, "earliest")
    assert "--into" in said.value.remedy

    begin, into = f"{topic}:0:1,{topic}:1:0", "repair.totals"
    shown = replay(lake, rivermouth_spark, begin, into=into, dry_run=True)
    # In one batch the records of key 2 do not fit, so all of them are bad.
    assert [(each.records, each.bad) for each in shown.plan.ranges] == [(3, 3), (2, 0)]
    assert (shown.written, shown.plan.inserted) == (False, 2)
    assert not lake.path(into).exists()

    done = replay(lake, rivermouth_spark, begin, into=into)
    assert (done.plan, done.written) == (shown.plan, True)
    assert totals(lake, into) == {1: (1, 20), 3: (1, 5)}
    assert [each["bidders"] for each in lake.rows(into)] == [1, 1]
    version = DeltaTable(str(lake.path(into))).version()
    again = replay(lake, rivermouth_spark, begin, into=into)
    assert (again.written, again.plan.there, again.plan.rows) == (False, True, 0)
    with pytest.raises(ReplayRefused, match="each key may have one row"):
        replay(lake, rivermouth_spark, f"{topic}:0:0", into=into)
    assert DeltaTable(str(lake.path(into))).version() == version
    assert replay(lake, rivermouth_spark, f"{topic}:0:0", f"{topic}:0:2", "repair.more").written
    assert totals(lake, "repair.more") == {1: (1, 10), 2: (1, MOST)}
    assert totals(lake, table) == right
    assert problems(lake) == []
