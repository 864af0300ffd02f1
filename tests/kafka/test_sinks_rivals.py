"""Pipelines that send, while others commit to the table of their ledger, or take it away."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.write.files import table
from rivermouth.write.landing import Staged
from rivermouth.write.landings import send
from tests.faults.campaign.paths import Paths
from tests.faults.campaign.ways import alter
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE
from tests.faults.outcomes import refusal, went_well
from tests.kafka.test_sinks import proved, read_back, sending_few
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

LEDGER = "rivermouth.ledger_p"
EFFECTS = {"at-least-once": AT_LEAST_ONCE, "at-most-once": AT_MOST_ONCE}


@pytest.mark.takes_long(
    "at-least-once-asks for Spark", "at-most-once-understood", "at-most-once-asks for Spark"
)
@pytest.mark.parametrize("asks", [False, True], ids=["understood", "asks for Spark"])
@pytest.mark.parametrize("delivery", EFFECTS)
def test_a_rival_in_the_way_of_a_commit_repeats_nothing_and_loses_nothing(
    lake: Lake,
    rivermouth_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    delivery: str,
    asks: bool,
) -> None:
    """Twice, once before the batch is sent and once while its commit is made."""
    name = f"rival-{delivery}-{asks}"
    trace = lake.folder / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(trace))
    sending_few(lake, name, 20, delivery)
    met = Counter[str]()

    def reach(point: str) -> None:
        met[point] += 1
        if point == "P17" and met[point] in (3, 4):
            other = DeltaTable(str(lake.path(LEDGER))).alter
            other.set_table_properties({"delta.checkpointInterval": str(met[point] + 20)})
        if point == "P17" and met[point] == 6:
            assert alter(lake.path(LEDGER), asks=asks) is asks

    monkeypatch.setattr(table, "reach", reach)

    heard = went_well(lake.run(rivermouth_spark, "p"))

    sent = Counter(dict(each.headers())["rm-id"] for each in read_back(lake.servers, f"{name}-out"))
    assert (len(sent), sent.total()) == (20, 20)
    assert [each.sequence for each in heard.commits] == [1, 2, 3, 4, 5]
    assert proved(lake)["complete"]
    assert Paths(trace, {"p": lake.path(LEDGER)}, EFFECTS[delivery]).check() == []


@pytest.mark.thorough
@pytest.mark.parametrize("delivery", EFFECTS)
def test_a_plan_that_is_stale_is_noticed_before_its_batch_is_read(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, delivery: str
) -> None:
    name = f"stale-{delivery}"
    sending_few(lake, name, 20, delivery, bad=True)
    real, landed = send.Send.stage, list[int]()

    def stage(self: send.Send, batch: Any, plan: Any, held: Any) -> Staged:
        landed.append(plan.sequence)
        if landed.count(3) == 1 and plan.sequence == 3:
            other = DeltaTable(str(lake.path(LEDGER))).alter
            other.set_table_properties({"delta.checkpointInterval": "33"})
        return real(self, batch, plan, held)

    monkeypatch.setattr(send.Send, "stage", stage)

    went_well(lake.run(rivermouth_spark, "p"))

    assert landed.count(3) == 2
    bad = Counter(row["offset"] for row in lake.rows(f"{LEDGER}_quarantine"))
    assert max(bad.values()) == 1
    assert len(read_back(lake.servers, f"{name}-out")) == 20 - len(bad)


@pytest.mark.thorough
@pytest.mark.parametrize("anew", [False, True], ids=["gone", "made anew"])
def test_a_ledger_that_is_made_anew_in_mid_run_halts_and_is_not_written(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    name = f"anew-{anew}"
    sending_few(lake, name, 20, "at-least-once")
    table, met = lake.path(LEDGER), Counter[str]()

    def reach(point: str) -> None:
        met[point] += 1
        if point == "P14" and met[point] == 2:
            taken_away(table, anew=anew)

    monkeypatch.setattr(send, "reach", reach)

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code in ("RM409", "RM415"), error
    assert len(heard.retries) == 1
    assert heard.retries[0].error.code == "RM503"
    log = sorted(each.name for each in table.glob("_delta_log/*.json"))
    assert log in ([], [f"{0:020d}.json"])


def taken_away(table: Path, *, anew: bool) -> None:
    """The table is gone, or there is another one in its place."""
    fields = DeltaTable(str(table)).schema()
    shutil.rmtree(table)
    if anew:
        DeltaTable.create(str(table), pa.schema(fields))
