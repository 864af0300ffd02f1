"""A replay that is killed, in place and into another table: run again, it ends right."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rivermouth.config import TableName, load
from rivermouth.replay.command import replay
from rivermouth.replay.report import Replayed
from rivermouth.replay.request import read_bound
from rivermouth.verification import verify
from tests.faults.campaign.paths import Paths
from tests.faults.spark_lake import SparkLake
from tests.lake import (
    append_pipeline,
    bid,
    insert_pipeline,
    order,
    totals_pipeline,
    upsert_pipeline,
)
from tests.processes import said_by

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.kill,
]


def killed(lake: SparkLake, point: str, into: str = "") -> None:
    words, failpoints = ("p", "earliest", into), f"{point}=kill"
    with lake.driver(*words, spark=lake.spark, failpoints=failpoints, kind="replay") as process:
        said = said_by(process)
    assert process.returncode == -signal.SIGKILL, said


def again(lake: SparkLake, into: str = "") -> Replayed:
    table = TableName.parse(into) if into else None
    begin = read_bound("--from", "earliest")
    return replay(load(lake.file), lake.spark, lake.scratch, "p", begin, into=table)


MODES: Mapping[str, tuple[Callable[[str], dict[str, Any]], str, Callable[[int, int], bytes]]] = {
    "upsert": (upsert_pipeline, "order_id", lambda n, turn: order(n, f"s{turn}", n)),
    "insert": (insert_pipeline, "auction", bid),
}
"""The pipeline of a topic, its key, and the record of a key that comes in a turn."""


@pytest.mark.parametrize(("point", "done"), [("P3", False), ("P6", True), ("P7", True)])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_replay_runs_again_and_ends_right(
    lake: SparkLake,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    point: str,
    done: bool,
) -> None:
    make, key, record = MODES[mode]
    topic, trace = f"killed-{mode}-{point.lower()}", lake.folder / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(trace))
    lake.topic(topic)
    config = lake.configure(p=make(topic))
    table = str(config.pipelines["p"].target.table)
    for turn in (1, 2):
        lake.produce(topic, [(b"%d" % n, record(n, turn), 0) for n in range(6)])
        lake.go()
    lake.spark.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE {key} = 3")

    killed(lake, point)

    assert (3 in {row[key] for row in lake.rows(table)}) is done
    assert again(lake).written is not done
    assert verify(config).ok
    lake.produce(topic, [(b"%d" % n, record(n, 3), 0) for n in (3, 9)])
    lake.go(audit=True)
    [found] = verify(config).pipelines
    assert (found.problems, found.ok) == ((), True)
    assert Paths(trace, {"p": lake.path(table)}).check() == []
    if mode == "insert":
        prices = {row["auction"]: row["price"] for row in lake.rows(table)}
        assert prices == {**dict.fromkeys(range(6), 1), 9: 3}


@pytest.mark.parametrize(
    ("make", "rows"), [(append_pipeline, 6), (insert_pipeline, 3), (totals_pipeline, 3)]
)
def test_a_killed_replay_into_another_table_writes_each_row_once(
    lake: SparkLake, make: Callable[[str], dict[str, Any]], rows: int
) -> None:
    topic = f"killed-{make.__name__.replace('_', '-')}"
    lake.topic(topic)
    lake.configure(p=make(topic))
    lake.produce(topic, [(None, bid(n % rows), 0) for n in range(6)])
    lake.go()
    for point in ("P2", "P3", "P6"):
        killed(lake, point, "repair.bids")
    assert again(lake, "repair.bids").plan.there
    found = lake.rows("repair.bids")
    assert sorted(row["auction"] for row in found) == [*range(rows)]
    assert {row.get("n", 2) for row in found} == {2}
