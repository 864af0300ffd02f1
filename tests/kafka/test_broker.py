"""The broker is real, keeps its data, and never outlives its owner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from rivermouth.errors import SetupError
from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic, produce
from tests.waiting import wait_for

pytestmark = pytest.mark.kafka

OWNER = """
import os, sys, time
from rivermouth.local.broker import Broker
broker = Broker()
broker.start()
copy = 0 if sys.argv[1] == "alone" else os.fork()
if sys.argv[1] == "alone" or copy:
    print(broker.pid, broker.directory, copy, flush=True)
time.sleep(300)
"""


def high_watermark(broker: Broker, topic: str, partition: int = 0) -> int:
    """The end of the partition. A broker that has just started does not lead it at once."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "any", "log_level": 2}
    consumer, found = Consumer(settings), list[int]()

    def answered() -> bool:
        try:
            at = TopicPartition(topic, partition)
            found.append(consumer.get_watermark_offsets(at, timeout=30)[1])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
        return bool(found)

    try:
        wait_for(answered)
        return found[0]
    finally:
        consumer.close()


def alive(pid: int) -> bool:
    """Zombies do not count: they hold no port and no file."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1] not in ("", "Z")


def test_it_takes_topics_and_records_as_soon_as_it_is_there(rivermouth_broker: Broker) -> None:
    create_topic(rivermouth_broker.bootstrap_servers, "taken", 2, {"retention.ms": "100000"})
    records = [(b"key", b"value", 0), (None, b"value", 1), (b"key", None, 1)]
    assert produce(rivermouth_broker.bootstrap_servers, "taken", records) == 3
    assert [high_watermark(rivermouth_broker, "taken", each) for each in (0, 1)] == [1, 2]


def test_starting_a_running_broker_again_changes_nothing(rivermouth_broker: Broker) -> None:
    pid = rivermouth_broker.pid
    rivermouth_broker.start()
    assert rivermouth_broker.pid == pid
    assert alive(pid)


def test_a_taken_port_is_said_before_anything_is_started(
    rivermouth_broker: Broker, tmp_path: Path
) -> None:
    second = Broker(tmp_path, rivermouth_broker.port)
    with pytest.raises(SetupError, match=f":{rivermouth_broker.port}: the port is taken"):
        second.start()
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data", settings={"num.io.threads": "many"})
    with pytest.raises(SetupError, match=r"num\.io\.threads"):
        broker.start()
    assert broker.pid == 0


@pytest.mark.thorough
def test_stop_and_a_kill_and_another_owner_all_keep_the_data(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", settings={"num.partitions": "3"}) as broker:
        create_topic(broker.bootstrap_servers, "default", -1)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        wait_for(lambda: "default" in admin.list_topics(timeout=30).topics)
        assert len(admin.list_topics(timeout=30).topics["default"].partitions) == 3

        create_topic(broker.bootstrap_servers, "kept")
        produce(broker.bootstrap_servers, "kept", [(None, b"before", 0)] * 5)
        address, first = broker.bootstrap_servers, broker.pid
        broker.stop()
        assert not alive(first)
        assert broker.pid == 0

        broker.start()
        assert (broker.bootstrap_servers, high_watermark(broker, "kept")) == (address, 5)
        produce(broker.bootstrap_servers, "kept", [(None, b"after", 0)] * 2)
        os.kill(broker.pid, signal.SIGKILL)
        wait_for(lambda: not alive(broker.pid))
        broker.start()
        assert high_watermark(broker, "kept") == 7
    with Broker(tmp_path / "data") as another:
        assert high_watermark(another, "kept") == 7
    assert (tmp_path / "data").exists()


@pytest.mark.thorough
def test_a_temporary_folder_goes_with_the_block() -> None:
    with Broker() as broker:
        pid, directory = broker.pid, broker.directory
        assert directory.is_dir()
    assert not alive(pid)
    assert not directory.exists()


@pytest.mark.takes_long("alone")
@pytest.mark.kill
@pytest.mark.parametrize("owner", ["alone", "with a forked copy that outlives it"])
def test_a_killed_owner_takes_its_broker_along(owner: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, owner], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, directory, copy = process.stdout.readline().split()
        assert alive(int(pid))
        process.kill()
        try:
            wait_for(lambda: not alive(int(pid)))
            wait_for(lambda: not Path(directory).exists())
            assert copy == "0" or alive(int(copy)), "the copy should have held the pipe open"
        finally:
            if copy != "0":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(copy), signal.SIGKILL)
