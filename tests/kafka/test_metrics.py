"""What a real run tells: figures that are scraped while it runs, a file at its end, JSON lines."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from rivermouth.local.server import HOST, free_port
from rivermouth.monitor import telling
from tests.lake import Lake, append_pipeline, bid
from tests.pages import page, snippets

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPIC = "metrics-bids"
DONE = (
    'rivermouth_records_total{outcome="applied",pipeline="bids"} 5.0',
    'rivermouth_lag_records{pipeline="bids"} 0.0',
)
"""What is there once all is read, and was looked at."""


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker) -> Lake:
    made = Lake(tmp_path, rivermouth_broker.bootstrap_servers)
    made.configure(bids=append_pipeline(TOPIC))
    return made


@pytest.fixture(scope="module", autouse=True)
def topic(rivermouth_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = Lake(tmp_path_factory.mktemp("metrics"), rivermouth_broker.bootstrap_servers)
    made.topic(TOPIC, 1)
    made.produce(TOPIC, [*((None, bid(number), 0) for number in range(5)), (None, b"{", 0)])


def figures(text: str) -> dict[str, float]:
    """The samples of one pipeline, by their names and other labels."""
    found = {}
    for family in parsed(text):
        for each in family.samples:
            others = [value for name, value in each.labels.items() if name != "pipeline"]
            found[" ".join([each.name, *others])] = each.value
    return found


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(each) for each in text.splitlines() if each.startswith("{")]


def documented(word: str) -> list[str]:
    """The arguments of a command of the page."""
    every = "".join(snippets(page("metrics"), "sh")).splitlines()
    [found] = [each for each in every if word in each]
    return shlex.split(found.partition("lake.yml")[2])


def test_a_run_writes_a_file_of_figures(lake: Lake, rivermouth_spark: SparkSession) -> None:
    option, name = documented("--metrics-file")
    file = lake.file.parent / name
    done = lake.command("run", option, str(file), spark=rivermouth_spark)
    assert done.returncode == 0, done.stderr
    found = figures(file.read_text(encoding="utf-8"))
    assert found["rivermouth_records_total applied"] == 5
    assert found["rivermouth_records_total quarantined"] == 1
    assert found["rivermouth_offsets_total"] == 6
    assert (found["rivermouth_lag_records"], found["rivermouth_state OK"]) == (0, 1)


def test_a_run_writes_json_lines(lake: Lake, rivermouth_spark: SparkSession) -> None:
    done = lake.command("run", *documented("--log json"), spark=rivermouth_spark)
    assert done.returncode == 0, done.stderr
    found = lines(done.stdout)
    assert len(found) == len(done.stdout.splitlines()), "nothing else is there"
    assert [each["event"] for each in found] == ["committed", "opened", "committed"]
    assert {each["pipeline"] for each in found} == {"bids"}
    assert (found[-1]["applied"], found[-1]["quarantined"]) == (5, 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", str(found[-1]["time"]))


@contextmanager
def until(scraped: Callable[[], str]) -> Iterator[Future[str]]:
    """Asks until there is an answer, and interrupts this process then."""

    def ask() -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                text = scraped()
            except URLError:
                text = ""
            if all(each in text for each in DONE):
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        return text

    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(ask)


def test_a_run_without_end_is_scraped(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also tells each change of state, and no single commits."""
    monkeypatch.setattr(telling, "EVERY_S", 0.5)
    endless, option, address = documented("--metrics ")
    port = free_port()
    url = f"http://{HOST}:{port}/metrics"
    address = f"{HOST}:{port}" if address == ":9464" else address
    with until(lambda: urlopen(url, timeout=5).read().decode()) as scraped:
        words = (endless, option, address, "--log", "json")
        done = lake.command("run", *words, spark=rivermouth_spark)
    assert done.returncode == 0, done.stderr
    found = figures(scraped.result())
    assert found["rivermouth_commit_seconds_count"] >= 1
    assert (found["rivermouth_lag_seconds"], found["rivermouth_state OK"]) == (0, 1)
    assert "committed" not in {each["event"] for each in lines(done.stdout)}
