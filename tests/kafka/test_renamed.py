"""A renamed pipeline on a real broker: it goes on in its first ledger, and is proved over both."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermouth.config import load
from rivermouth.errors import IdentityChanged
from rivermouth.operate.maintain import Maintenance
from rivermouth.operate.pace import State
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.operate.sql import query
from rivermouth.operate.status import status
from rivermouth.verification import Since, beside_offsets, record_states, verify
from tests.faults.outcomes import refusal, went_well
from tests.folders import lake_of
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MODES = {"append": (append_pipeline, bid(1)), "upsert": (upsert_pipeline, order(1, "new", 1))}


def produced(lake: Lake, topic: str, value: bytes) -> None:
    """Two good records, and one that goes to quarantine."""
    lake.produce(topic, [(b"1", value, 0), (b"1", value, 0), (b"1", b"?", 0)])


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_a_renamed_pipeline_goes_on_in_its_ledger_and_is_proved(
    lake: Lake, rivermouth_spark: SparkSession, mode: str
) -> None:
    topic = f"renamed-{mode}"
    make, value = MODES[mode]
    pipeline = make(topic)
    table = pipeline["target"]["table"]
    lake.topic(topic)
    produced(lake, topic, value)
    config = lake.configure(first=pipeline)
    went_well(lake.run(rivermouth_spark, "first"))
    proofs = beside_offsets(lake_of(config))
    assert verify(config, proofs=proofs).ok
    produced(lake, topic, value)

    lake.configure(second=pipeline)
    halted = refusal(lake.run(rivermouth_spark, "second"))
    assert isinstance(halted, IdentityChanged)
    assert "ledger: first" in str(halted)
    config = lake.configure(second={**pipeline, "ledger": "first"})
    proof = record_states(config)(config.pipelines["second"])
    heard = went_well(lake.run(rivermouth_spark, "second"))

    assert proof is not None, "what was proved under the first name is not lost"
    assert proof.void is None
    assert {each.pipeline for each in heard.opens} == {each.pipeline for each in heard.commits}
    assert heard.commits[0].pipeline == "second"
    [found] = status(config).pipelines
    assert (found.name, found.state, found.sequence) == ("second", State.OK, 3)
    assert found.projected == 3
    for since in (Since(), None):
        [proved] = verify(config, since=since, proofs=proofs, strict=True).pipelines
        assert (proved.name, proved.found) == ("second", 0)
    assert proved.records == 6
    bad = query(config, f"SELECT count(*) AS n FROM {table}_quarantine").as_dicts()
    assert bad == [{"n": 2}]
    quarantine = str(lake.path(f"{table}_quarantine"))
    rows = rivermouth_spark.read.format("delta").load(quarantine).where("sequence = 2")
    rows.withColumn("commit", F.lit("dead")).write.format("delta").mode("append").save(quarantine)
    upkeep = Maintenance(config, rivermouth_spark, lake.scratch, clock=lambda: 4e9)
    [report] = upkeep.pipelines(["second"])
    assert report.error is None
    assert [each.orphans for each in report.tables] == [0, 1, 0], "of a dead driver"
    assert rebuild_offsets(config) == {"second": 3}
    assert verify(load(lake.file)).ok
    assert config.named("first") == "second", "messages may give the name in the ledger"
