"""Pipelines with code of their own on a real broker: run, proved, and what the proof notices."""

from __future__ import annotations

import signal

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.verify import Kind, Unchecked, verify
from rivermouth.verify.result import PipelineProof
from tests.kafka.own_code import MADE, a_pipeline
from tests.lake import BIDS, Heard, Lake, append_pipeline, bid
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def run(lake: Lake, spark: SparkSession) -> Heard:
    heard = lake.run(spark, "p")
    assert [each.error for each in heard.ends] == [None]
    return heard


def proved(lake: Lake) -> PipelineProof:
    [proof] = verify(load(lake.file)).pipelines
    return proof


@pytest.mark.takes_long("transform")
@pytest.mark.parametrize("kind", MADE)
def test_own_code_is_run_proved_and_what_is_lost_is_noticed(
    lake: Lake, rivermouth_spark: SparkSession, kind: str
) -> None:
    topic, table = f"own-{kind}", f"bronze.own_{kind}"
    lake.topic(topic, 2)
    lake.configure(p=a_pipeline(topic, kind))
    for _ in range(2):
        lake.produce(topic, [(None, bid(each), each // 2 % 2) for each in range(20)])
        lake.produce(topic, [(None, b"{oops", 0)])
        run(lake, rivermouth_spark)
    lake.produce(topic, [(None, bid(each), each // 2 % 2) for each in range(20)])
    heard = run(lake, rivermouth_spark)

    applied = sum(each.applied for commit in heard.commits for each in commit.rows)
    assert applied == 20, "each record took effect, with or without a row"
    rows = lake.rows(table)
    left_out = 30 if kind == "transform" else 0
    assert len(rows) == 60 - left_out
    if kind == "select":
        assert {row["twice"] for row in rows} == {200}
    else:
        assert {(row["item"] % 2, row["began"]) for row in rows} == {
            (0, 0),
            (0, 10),
            (0, 11),
            (0, 20),
            (0, 22),
        }
    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (62, 2)
    assert proof.left[Unchecked.MADE] == len(rows)
    assert proof.left.get(Unchecked.LEFT_OUT, 0) == left_out
    rebuild_offsets(load(lake.file))
    assert proved(lake).ok

    rivermouth_spark.sql(
        f"DELETE FROM delta.`{lake.path(table)}` WHERE item = 4 AND _kafka.offset < 10"
    ).collect()

    lost = proved(lake)
    assert (lost.found, lost.counts[Kind.MISSING]) == (1, 1), lost
    assert lost.left.get(Unchecked.LEFT_OUT, 0) == left_out


@pytest.mark.thorough
def test_a_pipeline_gets_and_loses_own_code_and_stays_proved(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("changed")
    plain = append_pipeline("changed")
    selected = {
        **plain,
        "select": "auction, bidder, -price AS price, at",
        "target": {**plain["target"], "schema": BIDS},
    }
    for pipeline in (plain, selected, plain):
        lake.configure(p=pipeline)
        lake.produce("changed", [(None, bid(each), 0) for each in range(5)])
        run(lake, rivermouth_spark)
        proof = proved(lake)
        assert proof.ok, proof

    assert sorted(row["price"] for row in lake.rows("bronze.changed")) == [-100] * 5 + [100] * 10
    assert proof.left == {Unchecked.MADE: 5}


@pytest.mark.thorough
@pytest.mark.kill
def test_a_driver_killed_around_its_commit_leaves_every_row_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """A batch of two passes: with its bad record in quarantine and no commit, then with both."""
    lake.topic("own-kills", 2)
    lake.configure(p=a_pipeline("own-kills", "transform"))
    for point in ("P12", "P6", ""):
        lake.produce("own-kills", [(None, bid(each), each // 2 % 2) for each in range(20)])
        lake.produce("own-kills", [(None, b"{oops", 0)])
        failpoints = f"{point}=kill" if point else ""
        with lake.driver("p", spark=rivermouth_spark, failpoints=failpoints) as driver:
            said = said_by(driver)
        assert driver.returncode == (-signal.SIGKILL if point else 0), said

    proof = proved(lake)
    assert proof.ok, proof
    assert (proof.records, proof.quarantined) == (63, 3)
    assert proof.left == {Unchecked.MADE: 30, Unchecked.LEFT_OUT: 30}
    assert len(lake.rows("bronze.own_kills")) == 30
