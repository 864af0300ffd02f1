"""``report`` over a lake of real runs, by its page; ``tests/report`` has a browser."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import urllib.request

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from tests.commands import scratch_in
from tests.faults.outcomes import went_well
from tests.lake import Lake, append_pipeline, bid
from tests.pages import page, snippets
from tests.processes import started

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPIC = "report-bids"
COMMANDS = "".join(snippets(page("report"), "sh")).splitlines()


@pytest.fixture(scope="module")
def lake(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Lake:
    """A pipeline with two batches, one of which has a bad record."""
    made = Lake(tmp_path_factory.mktemp("report"), rivermouth_broker.bootstrap_servers)
    made.topic(TOPIC, 2)
    made.configure(bids=append_pipeline(TOPIC))
    for values in ([bid(1), bid(2), b"<b>"], [bid(3)]):
        made.produce(TOPIC, [(None, each, n % 2) for n, each in enumerate(values)])
        went_well(made.run(rivermouth_spark, "bids"))
    return made


@pytest.mark.parametrize("line", [each for each in COMMANDS if "--serve" not in each])
def test_each_command_of_the_page_writes_a_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(lake.folder)
    words = shlex.split(line)[3:]
    done = lake.command("report", *words)
    assert done.returncode == 0, done.stderr
    text = (lake.folder / done.stdout.partition(":")[0]).read_text(encoding="utf-8")
    assert ("&lt;b&gt;" in text) == ("--samples" in words)
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    [told] = json.loads(found[1])
    history = json.loads(lake.command("history", "bids", "-n", "0", "--json").stdout)["commits"]
    counted = [each for each in history if each["offsets"]]
    assert sum(told["records"]) == sum(each["offsets"] for each in counted) == 4
    assert sum(told["bad"]) == sum(each["quarantined"] for each in counted) == 1
    assert [code for code, _ in told["codes"]] == ["RM603"]
    assert max(filter(None, told["lag"])) < 600
    assert {name for name, _, _ in told["heat"]["rows"]} == {f"{TOPIC}-0", f"{TOPIC}-1"}


def test_the_page_is_served_until_it_is_interrupted(lake: Lake) -> None:
    assert [each for each in COMMANDS if "--serve" in each]
    command = [sys.executable, "-m", "rivermouth", "report", str(lake.file), "--serve"]
    with started(command, {**os.environ, **scratch_in(lake.scratch)}) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[4]
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read().decode()
        assert 'data-refresh="5"' in text
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_what_is_wrong_is_one_line(lake: Lake) -> None:
    for words, said in (
        ((":8080",), "--serve and perhaps a port"),
        (("--serve", "-o", "x.html"), "--serve and perhaps a port"),
        (("--serve", ":99999"), "write a port, as :8080"),
        (("-o", "no/such/folder.html"), "the report cannot be written"),
    ):
        done = lake.command("report", *words)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
