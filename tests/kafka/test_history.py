"""``history``, ``at`` and ``status`` over a lake in which others restored, by their pages."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from threading import Timer

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.faults.outcomes import went_well
from tests.lake import Lake, order, upsert_pipeline
from tests.pages import page, snippets

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPIC = "history-orders"


@pytest.fixture(scope="module")
def lake(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Lake:
    """Two batches, one of which a RESTORE took back; accepted, and read again."""
    made = Lake(tmp_path_factory.mktemp("history"), rivermouth_broker.bootstrap_servers)
    made.topic(TOPIC, 1)
    made.configure(orders=upsert_pipeline(TOPIC))
    for number in range(2):
        rows = [(b"%d" % i, order(i, f"round {number}", i), 0) for i in range(5)]
        made.produce(TOPIC, [*rows, (b"9", b"{", 0)])
        went_well(made.run(rivermouth_spark, "orders"))
    table = DeltaTable(made.path("silver.history_orders"))
    table.restore(2)
    done = made.command("resume", "orders", "--accept", "restore")
    assert done.returncode == 0, done.stderr
    went_well(made.run(rivermouth_spark, "orders"))
    return made


def commands() -> list[str]:
    found = [line for name in ("history", "status") for line in snippets(page(name), "sh")]
    return "".join(found).splitlines()


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Somebody presses Ctrl-C after three seconds."""
    timer = Timer(3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.cancel()


@pytest.mark.parametrize("line", commands())
def test_each_command_of_a_page_ends_well_in_80_columns(
    lake: Lake, line: str, request: pytest.FixtureRequest
) -> None:
    if "--watch" in line:
        request.getfixturevalue("interrupted")
    _, command, _, *words = shlex.split(line)
    done = lake.command(command, *(each.replace("orders:", f"{TOPIC}:") for each in words))
    assert done.returncode == 0, done.stderr
    if not {"--csv", "--json"} & {*words}:
        path = str(lake.path("silver.history_orders"))
        shown = [each for each in done.stdout.splitlines() if path not in each]
        assert max(map(len, shown)) <= 80


def test_the_history_tells_what_stands_and_what_was_taken_back(lake: Lake) -> None:
    done = lake.command("history", "orders", "-n", "0", "--json")
    commits = json.loads(done.stdout)["commits"]
    told = [(each["what"], each["stands"], each["offsets"]) for each in reversed(commits)]
    assert told == [
        ("CREATE TABLE", True, None),
        ("new partitions", True, 0),
        ("batch", True, 6),
        ("batch", False, 6),
        ("RESTORE", True, None),
        ("restore accepted", True, 0),
        ("batch", True, 6),
    ]
    counted = [(each["applied"], each["quarantined"]) for each in commits if each["offsets"]]
    assert counted == [(5, 1)] * 3


def test_the_statement_reads_the_rows_of_the_offsets_that_it_names(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    found = json.loads(lake.command("at", "orders", "--version", "2", "--json").stdout)
    assert found["position"] == {TOPIC: {"0": 6}}
    rows = rivermouth_spark.sql(found["sql"]).collect()
    assert {each["status"] for each in rows} == {"round 0"}
    difference = json.loads(lake.command("at", "orders", "--diff", "2", "--json").stdout)
    assert difference["partitions"] == [{"topic": TOPIC, "partition": 0, "from": 6, "to": 12}]


def test_what_is_wrong_is_one_line(lake: Lake) -> None:
    for words, code, said in (
        (("at", "orders", "--offset", "x"), 2, "write topic:partition:offset"),
        (("at", "orders", "--offset", f"{TOPIC}:0:99"), 2, "RM704"),
        (("at", "orders", "--version", "1", "--time", "1d"), 2, "one of --time"),
        (("history", "order"), 2, "orders"),
        (("history", "orders", "--since", "noon"), 2, "write a time with its zone"),
    ):
        done = lake.command(*words)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
