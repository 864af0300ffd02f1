"""What may happen to Kafka, on real brokers: down, frozen, cut off, transactions that hang."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermouth.config import load, unresolved
from rivermouth.errors import KafkaRefused
from rivermouth.kafka.groups import ConfiguredGroups
from rivermouth.local.broker import Broker
from rivermouth.local.server import free_port
from rivermouth.operate.pace import State
from rivermouth.operate.status import status
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.run.report import RetryReport
from rivermouth.verification import verify
from rivermouth.warehouse.lake.retry_notes import Retrying, RetryNotes
from tests.faults.outcomes import (
    applied,
    check_proved,
    problems,
    refusal,
    went_well,
)
from tests.faults.secured_broker import SecuredBroker, secured_broker
from tests.faults.spark_lake import SparkLake
from tests.folders import lake_in
from tests.lake import Heard, append_pipeline, bid, impatient, retrying
from tests.waiting import add_partition, delete_records, wait_for, wait_for_markers

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(folder / "broker", {"owner": "right", "reader": "reads"}) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path, secured: SecuredBroker, rivermouth_spark: SparkSession) -> SparkLake:
    """A lake on the broker that a test may do anything to."""
    return SparkLake(tmp_path, secured.broker.bootstrap_servers, rivermouth_spark)


@dataclass
class Noted(Heard):
    """Reads what ``status`` would be told with each try."""

    notes: RetryNotes = field(kw_only=True)
    noted: list[Retrying] = field(default_factory=list)

    def tries_again(self, report: RetryReport) -> None:
        super().tries_again(report)
        note = self.notes.read(report.pipeline)
        assert note is not None
        self.noted.append(note)


@pytest.mark.thorough
def test_a_broker_that_is_down_at_the_start_is_said_in_seconds(lake: SparkLake) -> None:
    away = SparkLake(lake.folder, f"127.0.0.1:{free_port()}", lake.spark)
    away.configure(p=retrying(append_pipeline("nowhere"), 15))
    began = time.monotonic()
    heard = Noted(notes=RetryNotes(lake_in(away.warehouse)))

    error = away.refused(heard=heard)

    assert (error.code, error.exit_code) == ("RM301", 1)
    assert time.monotonic() - began < 100
    assert heard.retries, "it was tried again"
    codes = {each.error.code for each in heard.retries}
    assert {"RM301"} <= codes <= {"RM301", "RM304"}, "away, and then not ready yet"
    assert heard.ends[0].retries == len(heard.retries)
    assert [note.tries for note in heard.noted] == [*range(1, len(heard.retries) + 1)]
    assert heard.notes.read("p") is None, "the pipeline has ended"
    assert away.rows("bronze.nowhere") == []


@pytest.mark.thorough
def test_a_broker_that_freezes_or_starts_again_in_mid_run_is_waited_for(
    own: SparkLake, secured: SecuredBroker
) -> None:
    own.ready("waited")
    with own.continuous("p") as heard:
        wait_for(lambda: applied(heard) == 5)
        os.kill(secured.broker.pid, signal.SIGSTOP)
        try:
            time.sleep(3)
        finally:
            os.kill(secured.broker.pid, signal.SIGCONT)
        own.bids("waited")
        wait_for(lambda: applied(heard) == 10)
        secured.broker.stop()
        secured.broker.start()
        own.bids("waited")
        wait_for(lambda: applied(heard) == 15)

    went_well(heard)
    check_proved(own, records=15)


@pytest.mark.thorough
def test_a_broker_that_is_away_for_long_is_tried_again_by_every_pipeline(
    own: SparkLake, secured: SecuredBroker
) -> None:
    names = ("away_a", "away_b")
    for name in names:
        own.topic(name)
        own.bids(name)
    own.configure(**{name: impatient(name) for name in names})
    with own.continuous(*names) as heard:
        wait_for(lambda: applied(heard) == 10)
        secured.broker.stop()
        try:
            # Spark's own question fails first, then openings do.
            wait_for(lambda: min(_tries(heard, name) for name in names) >= 3)
        finally:
            secured.broker.start()
        for name in names:
            own.bids(name)
        wait_for(lambda: applied(heard) == 20)

    codes = {each.error.code for each in heard.retries}
    assert {"RM301"} <= codes <= {"RM301", "RM304"}, "away, and then not ready yet"
    assert min(each.retries for each in went_well(heard).ends) >= 3
    check_proved(own, records=20)


def _tries(heard: Heard, pipeline: str) -> int:
    return sum(each.pipeline == pipeline for each in heard.retries)


@pytest.mark.thorough
def test_a_log_that_lost_its_tail_halts_also_after_it_has_grown_again(
    own: SparkLake, secured: SecuredBroker
) -> None:
    own.filled("cut")
    secured.broker.stop()
    for file in (secured.broker.directory / "data" / "cut-0").glob("0*"):
        file.unlink()
    secured.broker.start()

    halted = own.refused()

    assert (halted.code, halted.exit_code, halted.where) == ("RM416", 3, "p cut-0")
    assert (halted.expected, halted.found) == ("an end at 5 or after", "an end at 0")
    [found] = status(load(own.file)).pipelines
    assert found.state is State.BLOCKED
    own.produce("cut", [(None, bid(100 + n), 0) for n in range(9)])
    halted = own.refused()
    assert (halted.code, halted.exit_code, halted.where) == ("RM416", 3, "p cut-0")
    assert (halted.expected, halted.found) == ("leader epoch 0 to reach to 5", "an end at 0")
    assert "cut-0@0: other values in auction, _kafka.timestamp" in problems(own)


@pytest.mark.thorough
def test_a_broker_started_again_begins_leader_epochs_that_change_nothing(
    own: SparkLake, secured: SecuredBroker
) -> None:
    own.filled("elected", partitions=2)
    for _ in range(2):
        secured.broker.stop()
        secured.broker.start()
        own.bids("elected")
        assert own.go().ends[0].applied == 5


def test_a_hanging_transaction_is_named_and_what_is_behind_it_is_read_once_it_ends(
    lake: SparkLake, rivermouth_broker: Broker
) -> None:
    lake.ready("hangs")
    options = {
        "bootstrap.servers": rivermouth_broker.bootstrap_servers,
        "transactional.id": "hangs",
        "transaction.timeout.ms": 600_000,
        "log_level": 2,
    }
    producer = Producer(options)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("hangs", bid(99), partition=0)
    producer.flush(30)
    lake.bids("hangs")

    heard = lake.go()

    assert heard.ends[0].applied == 5
    assert "open transactions hold back 6 offsets" in heard.opens[0].line()
    [found] = status(load(lake.file)).pipelines
    assert (found.state, found.held_back) == (State.OK, 6)
    assert found.reason == "open transactions hold back 6 offsets; if they stay, one is hanging"
    producer.abort_transaction(30)
    wait_for_markers(options)
    assert lake.go().ends[0].applied == 5
    [found] = status(load(lake.file)).pipelines
    assert (found.held_back, found.reason) == (0, None)
    check_proved(lake, records=10)


def test_a_loss_is_recorded_where_that_is_asked_for_and_the_pipeline_goes_on_behind_it(
    lake: SparkLake,
) -> None:
    lake.filled("loses")
    lake.bids("loses")
    delete_records(lake.servers, "loses", before=8)
    assert lake.refused().code == "RM406"
    lake.configure(p=append_pipeline("loses", on_data_loss="record"))

    heard = lake.go()

    assert "3 offsets LOST" in heard.opens[0].line()
    assert [str(each) for each in heard.opens[0].lost] == ["loses-0[5,8)"]
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.lost, len(lake.rows("bronze.loses"))) == (True, 3, 7)
    assert lake.go().ends[0].commits == 0, "recorded once"


def test_what_a_partition_added_late_has_lost_already_halts_or_is_recorded(lake: SparkLake) -> None:
    lake.filled("late")
    add_partition(lake.servers, "late")
    lake.produce("late", [(None, bid(n), 1) for n in range(7)])
    delete_records(lake.servers, "late", before=5, partition=1)

    refused = lake.refused()
    assert (refused.code, "[0,5)" in refused.what) == ("RM406", True)

    lake.configure(p=append_pipeline("late", on_data_loss="record"))
    heard = lake.go()
    assert [str(each) for each in heard.opens[0].lost] == ["late-1[0,5)"]
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.lost, len(lake.rows("bronze.late"))) == (True, 5, 7)


@pytest.mark.thorough
def test_a_loss_in_mid_run_is_recorded_without_a_new_run_where_that_is_asked_for(
    lake: SparkLake,
) -> None:
    lake.topic("losing")
    recording = append_pipeline("losing", on_data_loss="record")
    lake.configure(p={**recording, "trigger": "15s"})
    lake.bids("losing")
    with lake.continuous("p") as heard:
        wait_for(lambda: applied(heard) == 5)
        # Triggers come at whole quarters of a minute: none between the records and their deletion.
        wait_for(lambda: 1 < time.time() % 15 < 8)
        lake.bids("losing")
        delete_records(lake.servers, "losing", before=8)
        wait_for(lambda: applied(heard) == 7 or bool(heard.ends))

    assert [each.error.code for each in heard.retries] == ["RM406"]
    assert [str(each) for each in went_well(heard).opens[1].lost] == ["losing-0[5,8)"]
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.ok, proof.lost) == (True, 3)


@pytest.mark.thorough
def test_a_wrong_password_is_never_an_empty_success(own: SparkLake, secured: SecuredBroker) -> None:
    own.settings = secured.login("reader", "wrong")
    own.ready("locked")
    began = time.monotonic()

    refused = own.refused()

    assert (refused.code, refused.exit_code) == ("RM303", 1)
    assert "Authentication failed: Invalid username or password" in refused.found
    assert time.monotonic() - began < 100


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("password", "found", "remedy"),
    [
        ("wrong", "Authentication failed: Invalid username or password", "Check the credentials"),
        ("reads", "Group authorization failed", "Grant the user READ on the group"),
    ],
)
def test_a_group_for_monitors_tells_what_the_user_lacks(
    own: SparkLake, secured: SecuredBroker, password: str, found: str, remedy: str
) -> None:
    own.settings = secured.login("reader", password)
    own.configure(p=append_pipeline("watched"))
    place = TopicPartition("watched", 0)
    with closing(ConfiguredGroups(load(own.file), unresolved)) as groups:
        with pytest.raises(KafkaRefused, match="the broker refused") as unwritten:
            groups.write("watching", {place: 1})
        with pytest.raises(KafkaRefused, match="the broker refused") as unread:
            groups.read("watching", [place])
    for refused in (unwritten.value, unread.value):
        assert found in refused.found
        assert refused.remedy.startswith(remedy)


def test_who_may_only_read_the_topic_may_use_each_command_and_verify_says_what_it_cannot_know(
    own: SparkLake, secured: SecuredBroker
) -> None:
    own.settings = secured.login("reader", "reads")
    own.ready("granted")
    commands = (["doctor"], ["run"], ["status"], ["topic", "granted"], ["verify"])
    with secured.may_read("reader", "granted"):
        ended = [own.command(*words, spark=own.spark) for words in commands]
        said = own.command("verify", "--json")

    assert [each for each in (*ended, said) if each.returncode] == []
    [proof] = json.loads(said.stdout)["pipelines"]
    assert "not told: whether Kafka compacts granted" in " ".join(ended[-1].stdout.split())
    assert (proof["ok"], proof["records"], proof["missing"]) == (True, 5, 0)
    assert proof["not_checked"] == {}
    assert proof["not_told"] == ["whether Kafka compacts granted (DescribeConfigs)"]


@pytest.mark.thorough
def test_a_right_that_is_missing_or_taken_away_stops_the_run_and_nothing_is_lost(
    own: SparkLake, secured: SecuredBroker
) -> None:
    own.settings = secured.login("reader", "reads")
    own.ready("guarded")
    assert own.refused().code == "RM303"

    with secured.may_read("reader", "guarded"), own.continuous("p") as heard:
        wait_for(lambda: applied(heard) == 5)
        secured.take_rights("guarded")
        own.bids("guarded")
        wait_for(lambda: bool(heard.ends))
    assert refusal(heard).exit_code == 1
    with secured.may_read("reader", "guarded"):
        assert own.go().ends[0].applied == 5

    own.settings = {}
    own.configure(p=append_pipeline("guarded"))
    check_proved(own, records=10)
