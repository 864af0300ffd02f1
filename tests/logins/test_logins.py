"""Every way to log in, said once, serves both clients and all commands, on a real broker."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import unresolved
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.options import spark_options
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.source.batches import reader_options
from tests.faults.outcomes import refusal
from tests.lake import bid
from tests.logins.certificates import Authority
from tests.logins.conftest import GuardedLake
from tests.logins.ways import WAYS, section

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def filled(lake: GuardedLake, name: str) -> str:
    """A topic with five records."""
    topic = name.replace(" ", "-").lower()
    lake.topic(topic)
    lake.produce(topic, [(None, bid(n), 0) for n in range(5)])
    return topic


@pytest.mark.parametrize("way", WAYS)
def test_a_login_gives_facts_to_librdkafka_and_records_to_spark(
    way: str, lake: GuardedLake, rivermouth_spark: SparkSession
) -> None:
    topic = filled(lake, f"facts {way}")
    options = lake.log_in_by(way, topic).kafka.revealed(unresolved)

    facts = Kafka(options).facts([topic])
    reader = rivermouth_spark.read.format("kafka").options(**reader_options(spark_options(options)))
    records = reader.options(subscribe=topic).load().count()

    assert facts.watermarks[TopicPartition(topic, 0)].high == 5
    assert records == 5


@pytest.mark.short(("way",), {("oauth",)})
@pytest.mark.parametrize("way", WAYS)
def test_every_command_logs_in(way: str, lake: GuardedLake, rivermouth_spark: SparkSession) -> None:
    topic = filled(lake, f"commands {way}")
    lake.log_in_by(way, topic)

    names = ("doctor", "run", "status", "verify")
    said = {name: lake.command(name, spark=rivermouth_spark) for name in names}

    assert {name: done.returncode for name, done in said.items()} == dict.fromkeys(said, 0), said
    assert f"topic {topic}" in said["doctor"].stdout.replace("\n", " ")
    assert "5 records" in said["run"].stdout
    assert len(lake.rows(f"bronze.{topic.replace('-', '_')}")) == 5


WRONG = {
    "scram": {"sasl.password": "wrong"},
    "oauth": {"sasl.oauthbearer.client.credentials.client.secret": "wrong"},
    "mtls": {},
    "provider": {"rivermouth.login.file": "/no/such/token"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", WRONG)
def test_a_login_that_is_refused_is_never_an_empty_success(
    way: str, lake: GuardedLake, rivermouth_spark: SparkSession
) -> None:
    topic = filled(lake, f"wrong {way}")
    options = {**section(way, lake.guarded), **WRONG[way]}
    if way == "mtls":
        stranger = Authority(lake.folder, "stranger").issue("ingest")
        options |= {
            "ssl.certificate.location": str(stranger.certificate),
            "ssl.key.location": str(stranger.key),
        }
    lake.log_in(options, topic)

    refused = refusal(lake.run(rivermouth_spark, topic.replace("-", "_")))

    assert (refused.code, refused.exit_code) == ("RM303", 1), refused
    assert "wrong" not in refused.found
    table = f"bronze.{topic.replace('-', '_')}"
    # A provider is asked before the table is made, a broker after.
    assert lake.rows(table) == [] if lake.path(table).exists() else way == "provider"
