"""Several rows of one record on a real broker: run, proved, killed, and what the proof notices."""

from __future__ import annotations

import signal

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.run.run import Run
from rivermouth.verify import Kind, Unchecked, verify
from rivermouth.verify.result import PipelineProof
from tests.kafka.own_code import EXPLODED, a_pipeline
from tests.lake import Lake, append_pipeline, bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

ROUND = 30
ROWS = {"explode": ROUND, "inline": 2 * ROUND}
"""Of a round: 0, 1 or 2 rows of a bid, or 1 to 3."""


def produce(lake: Lake, topic: str) -> None:
    """A round of bids, a third of them on each residue of the auction, and one bad record."""
    lake.produce(topic, [(None, bid(each), each // 3 % 2) for each in range(ROUND)])
    lake.produce(topic, [(None, b"{oops", 0)])


def run(lake: Lake, spark: SparkSession) -> int:
    """Run; how many records took effect."""
    heard = lake.run(spark, "p")
    assert [each.error for each in heard.ends] == [None]
    return sum(each.applied for commit in heard.commits for each in commit.rows)


def proved(lake: Lake) -> PipelineProof:
    [proof] = verify(load(lake.file)).pipelines
    return proof


@pytest.mark.thorough
@pytest.mark.parametrize("kind", EXPLODED)
def test_rows_and_records_are_counted_apart_and_proved(
    lake: Lake, rivermouth_spark: SparkSession, kind: str
) -> None:
    topic = f"exploded-{kind}"
    table = f"bronze.exploded_{kind}"
    lake.topic(topic, 2)
    lake.configure(p=a_pipeline(topic, kind))
    for _ in range(2):
        produce(lake, topic)
        assert run(lake, rivermouth_spark) == ROUND, "records, not rows"
    assert len(lake.rows(table)) == 2 * ROWS[kind]
    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (2 * ROUND + 2, 2)
    without = 20 if kind == "explode" else 0
    assert proof.left.get(Unchecked.LEFT_OUT, 0) == without
    assert proof.left[Unchecked.EXPLODED] == 2 * ROUND - without
    rebuild_offsets(load(lake.file))
    assert proved(lake).ok

    here = f"delta.`{lake.path(table)}`"
    rivermouth_spark.sql(f"DELETE FROM {here} WHERE item = 5 AND part = 1").collect()
    lost = proved(lake)
    assert (lost.found, lost.counts[Kind.MISSING]) == (2, 2), lost

    version = DeltaTable(str(lake.path(table))).version()
    accepting = Run(load(lake.file), rivermouth_spark, lake.scratch, continuous=False)
    [accepted] = accepting.accept_deletes("p", [version], lambda told: None)
    assert (accepted.rows, accepted.listed) == (2, True), "records that lost a row, and kept others"
    gone = proved(lake)
    assert gone.ok, gone
    assert gone.left[Unchecked.ERASED] == 2


@pytest.mark.thorough
def test_rows_of_a_second_commit_are_noticed(lake: Lake, rivermouth_spark: SparkSession) -> None:
    """As a driver would leave them that wrote its rows once more, past Delta's own check."""
    lake.topic("exploded-again", 2)
    lake.configure(p=a_pipeline("exploded-again", "explode"))
    produce(lake, "exploded-again")
    run(lake, rivermouth_spark)
    path = str(lake.path("bronze.exploded_again"))
    rows = rivermouth_spark.read.format("delta").load(path)
    rows.write.format("delta").mode("append").save(path)

    twice = proved(lake)

    assert (twice.found, twice.counts[Kind.DUPLICATED]) == (ROUND, ROUND), twice
    assert any("60 rows in the table, but" in each for each in twice.problems), twice


@pytest.mark.thorough
def test_a_pipeline_begins_and_ends_to_explode_and_stays_proved(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("exploded-since", 2)
    plain = append_pipeline("exploded-since")
    own = {
        **a_pipeline("exploded-since", "explode"),
        "transform": "tests.kafka.own_code:each_twice",
    }
    own["target"] = {**own["target"], "schema": plain["schema"]}
    for pipeline in (plain, own, plain):
        lake.configure(p=pipeline)
        produce(lake, "exploded-since")
        run(lake, rivermouth_spark)
        proof = proved(lake)
        assert proof.ok, proof
    assert len(lake.rows("bronze.exploded_since")) == 4 * ROUND
    assert proof.left == {Unchecked.MADE: 2 * ROUND, Unchecked.EXPLODED: ROUND}


@pytest.mark.thorough
@pytest.mark.kill
def test_a_driver_killed_around_its_commit_leaves_all_rows_of_each_record_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("exploded-kills", 2)
    lake.configure(p=a_pipeline("exploded-kills", "explode"))
    for point in ("P12", "P6", "P7", ""):
        produce(lake, "exploded-kills")
        failpoints = f"{point}=kill" if point else ""
        with lake.driver("p", spark=rivermouth_spark, failpoints=failpoints) as driver:
            said = said_by(driver)
        assert driver.returncode == (-signal.SIGKILL if point else 0), said

    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (4 * ROUND + 4, 4)
    assert len(lake.rows("bronze.exploded_kills")) == 4 * ROWS["explode"]
