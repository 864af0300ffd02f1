"""Pipelines with code of their own on a real broker: run, proved, killed, and what is noticed."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.run.run import Run
from rivermouth.verification import Kind, Unchecked, verify
from rivermouth.verification.result import PipelineProof
from tests.faults.outcomes import applied, went_well
from tests.kafka.own_code import EXPLODED, a_pipeline
from tests.lake import BIDS, Lake, append_pipeline, bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

ROUND = 30


@dataclass(frozen=True)
class Made:
    """What comes of a round: rows, records without one; and which rows are deleted then."""

    rows: int
    left_out: int
    deleted: str


KINDS = {
    "select": Made(ROUND, 0, "item = 4"),
    "transform": Made(ROUND // 2, ROUND // 2, "item = 4"),
    "explode": Made(ROUND, ROUND // 3, "item = 5 AND part = 1"),
    "inline": Made(2 * ROUND, 0, "item = 5 AND part = 1"),
}
"""Exploded are 0, 1 or 2 rows of a bid, or 1 to 3."""


def produce(lake: Lake, topic: str, *, bad: bool = True) -> None:
    """A round of bids, a third of them on each residue of the auction, and one bad record."""
    lake.produce(topic, [(None, bid(each), each // 3 % 2) for each in range(ROUND)])
    if bad:
        lake.produce(topic, [(None, b"{oops", 0)])


def proved(lake: Lake) -> PipelineProof:
    [proof] = verify(load(lake.file)).pipelines
    return proof


def left(kind: str, rounds: int) -> dict[Unchecked, int]:
    """What cannot be checked of so many rounds."""
    made = KINDS[kind]
    not_checked = {
        Unchecked.MADE: rounds * made.rows,
        Unchecked.LEFT_OUT: rounds * made.left_out,
        Unchecked.EXPLODED: rounds * (ROUND - made.left_out) if kind in EXPLODED else 0,
    }
    return {each: number for each, number in not_checked.items() if number}


@pytest.mark.takes_long("transform", "explode", "inline")
@pytest.mark.parametrize("kind", KINDS)
def test_own_code_is_run_proved_and_what_is_lost_is_noticed(
    lake: Lake, rivermouth_spark: SparkSession, kind: str
) -> None:
    topic, table = f"own-{kind}", f"bronze.own_{kind}"
    lake.topic(topic, 2)
    lake.configure(p=a_pipeline(topic, kind))
    for bad in (True, False):
        produce(lake, topic, bad=bad)
        heard = went_well(lake.run(rivermouth_spark, "p"))
        assert applied(heard) == ROUND, "each record took effect, with or without a row"

    rows = lake.rows(table)
    assert len(rows) == 2 * KINDS[kind].rows
    if kind == "select":
        assert {row["twice"] for row in rows} == {200}
    if kind == "transform":
        assert {(row["item"] % 2, row["began"]) for row in rows} == {(0, 0), (0, 15), (0, 16)}
    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (2 * ROUND + 1, 1)
    assert proof.left == left(kind, 2)
    rebuild_offsets(load(lake.file))
    assert proved(lake).ok

    here = f"delta.`{lake.path(table)}`"
    rivermouth_spark.sql(f"DELETE FROM {here} WHERE {KINDS[kind].deleted}").collect()
    lost = proved(lake)
    assert (lost.found, lost.counts[Kind.MISSING]) == (2, 2), lost
    assert lost.left.get(Unchecked.LEFT_OUT, 0) == 2 * KINDS[kind].left_out
    if kind in EXPLODED:
        check_that_the_loss_can_be_accepted(lake, rivermouth_spark, table)


def test_elements_of_an_array_become_rows(lake: Lake, rivermouth_spark: SparkSession) -> None:
    lake.topic("own-arrays", 2)
    lake.topic("own-items")
    sku = {"schema": "order_id BIGINT, sku STRING", "columns": {"order_id": {"from": "$.id"}}}
    lake.configure(
        whole={**append_pipeline("own-arrays"), "each": "$"},
        part={**append_pipeline("own-items"), **sku, "each": "items"},
    )
    arrays = [b"[%b]" % b",".join(map(bid, range(n))) for n in range(4)]
    lake.produce("own-arrays", [(None, each, n % 2) for n, each in enumerate(arrays)])
    lake.produce("own-arrays", [(None, b"{}", 0), (None, b"[null]", 1)])
    lake.produce("own-items", [(None, b'{"id": 7, "items": [{"sku": "a"}, {"sku": "b"}]}', 0)])
    lake.produce("own-items", [(None, b'{"id": 8}', 0), (None, b'{"id": 9, "items": [{}]}', 0)])

    heard = went_well(lake.run(rivermouth_spark, "whole", "part"))

    assert applied(heard) == 4 + 2
    found = lake.rows("bronze.own_arrays")
    assert Counter(e["auction"] for e in found) == {0: 3, 1: 2, 2: 1}
    items = [(e["order_id"], e["sku"]) for e in lake.rows("bronze.own_items")]
    assert items == [(7, "a"), (7, "b")]
    whole, part = verify(load(lake.file)).pipelines
    assert whole.ok, whole
    assert part.ok, part
    assert [each.quarantined for each in (whole, part)] == [2, 1]
    assert whole.left == {Unchecked.MADE: 6, Unchecked.LEFT_OUT: 1, Unchecked.EXPLODED: 3}


def check_that_the_loss_can_be_accepted(lake: Lake, spark: SparkSession, table: str) -> None:
    """Of two records that lost a row, and kept others."""
    version = DeltaTable(str(lake.path(table))).version()
    accepting = Run(load(lake.file), spark, lake.scratch, continuous=False)
    [accepted] = accepting.accept_deletes("p", [version], lambda _: None)
    assert (accepted.rows, accepted.listed) == (2, True)
    gone = proved(lake)
    assert gone.ok, gone
    assert gone.left[Unchecked.ERASED] == 2


@pytest.mark.thorough
def test_rows_of_a_second_commit_are_noticed(lake: Lake, rivermouth_spark: SparkSession) -> None:
    """As a driver would leave them that wrote its rows once more, past Delta's own check."""
    lake.topic("exploded-again", 2)
    lake.configure(p=a_pipeline("exploded-again", "explode"))
    produce(lake, "exploded-again")
    went_well(lake.run(rivermouth_spark, "p"))
    path = str(lake.path("bronze.exploded_again"))
    rows = rivermouth_spark.read.format("delta").load(path)
    rows.write.format("delta").mode("append").save(path)

    twice = proved(lake)

    assert (twice.found, twice.counts[Kind.DUPLICATED]) == (ROUND, ROUND), twice
    assert any("60 rows in the table, but" in each for each in twice.problems), twice


OWN = {
    "select": {"select": "auction, bidder, -price AS price, at"},
    "explode": {"transform": "tests.kafka.own_code:each_twice"},
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "prices", "not_checked"),
    [
        ("select", {100: 2 * ROUND, -100: ROUND}, {Unchecked.MADE: ROUND}),
        ("explode", {100: 4 * ROUND}, {Unchecked.MADE: 2 * ROUND, Unchecked.EXPLODED: ROUND}),
    ],
)
def test_a_pipeline_gets_and_loses_own_code_and_stays_proved(
    lake: Lake,
    rivermouth_spark: SparkSession,
    kind: str,
    prices: dict[int, int],
    not_checked: dict[Unchecked, int],
) -> None:
    topic = f"changed-{kind}"
    lake.topic(topic, 2)
    plain = append_pipeline(topic)
    explode: dict[str, Any] = {"explode": True} if kind == "explode" else {}
    own = {**plain, **OWN[kind], "target": {**plain["target"], "schema": BIDS, **explode}}
    for pipeline in (plain, own, plain):
        lake.configure(p=pipeline)
        produce(lake, topic)
        went_well(lake.run(rivermouth_spark, "p"))
        proof = proved(lake)
        assert proof.ok, proof

    assert Counter(row["price"] for row in lake.rows(f"bronze.changed_{kind}")) == prices
    assert proof.left == not_checked


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize("kind", ["transform", "explode"])
def test_a_driver_killed_around_its_commit_leaves_all_rows_of_each_record_once(
    lake: Lake, rivermouth_spark: SparkSession, kind: str
) -> None:
    """A batch of two passes: with its bad record in quarantine and no commit, then with both."""
    topic = f"own-kills-{kind}"
    lake.topic(topic, 2)
    lake.configure(p=a_pipeline(topic, kind))
    for point in ("P12", "P6", "P7", ""):
        produce(lake, topic)
        failpoints = f"{point}=kill" if point else ""
        with lake.driver("p", spark=rivermouth_spark, failpoints=failpoints) as driver:
            said = said_by(driver)
        assert driver.returncode == (-signal.SIGKILL if point else 0), said

    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (4 * ROUND + 4, 4)
    assert proof.left == left(kind, 4)
    assert len(lake.rows(f"bronze.own_kills_{kind}")) == 4 * KINDS[kind].rows
