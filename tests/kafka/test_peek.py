"""``peek`` at a real topic, by its page: decoded, raw, by key, from anywhere, and followed."""

from __future__ import annotations

import json
import shlex
import threading
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load, unresolved
from rivermouth.local.broker import Broker
from rivermouth.operate.peek import Peek, follow
from tests.lake import Lake, append_pipeline, order, upsert_pipeline
from tests.pages import page, snippets

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPIC = "peek-orders"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, rivermouth_broker: Broker) -> Lake:
    """Eight orders in two partitions, a bad one, a tombstone, and bytes that are no text."""
    made = Lake(tmp_path_factory.mktemp("peek"), rivermouth_broker.bootstrap_servers)
    made.topic(TOPIC, 2)
    made.configure(orders=upsert_pipeline(TOPIC))
    made.produce(TOPIC, [(b"%d" % n, order(n, "open", n), n % 2) for n in range(8)])
    made.produce(TOPIC, [(b"7", b"{oops", 0)])
    made.produce(TOPIC, [(b"7", None, 1)])
    made.produce(TOPIC, [(b"\xff", b"\xfe\xff", 0)])
    return made


def peeked(lake: Lake, *words: str) -> list[dict[str, Any]]:
    done = lake.command("peek", TOPIC, *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_command_of_the_page_ends_well(lake: Lake) -> None:
    for line in "".join(snippets(page("peek"), "sh")).splitlines():
        _, command, _, _, *words = shlex.split(line, comments=True)
        if command == "peek":
            assert peeked(lake, *words)
        else:
            assert previewed(lake, *words)


def previewed(lake: Lake, *words: str, spark: SparkSession | None = None) -> str:
    done = lake.command("preview", "orders", *words, spark=spark)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80 or "--json" in words
    return done.stdout


def test_a_preview_has_rows_and_reasons_side_by_side(lake: Lake) -> None:
    found = json.loads(previewed(lake, "-n", "4", "--json"))["records"]
    good, bad, gone, strange = found
    assert good["rows"][0]["order_id"] == 7
    assert (bad["value"], bad["bad"].startswith("RM6")) == ("{oops", True)
    assert gone["rows"] == [] or "bad" in gone
    assert strange["value_base64"] == "/v8="
    text = previewed(lake, "-n", "0")
    assert "11 records" in text


@pytest.mark.spark
def test_a_preview_calls_what_makes_the_rows(lake: Lake, rivermouth_spark: SparkSession) -> None:
    plain = append_pipeline(TOPIC)
    target = {**plain["target"], "schema": "id BIGINT, loud STRING", "table": "s.loud"}
    schema = "order_id BIGINT, status STRING"
    select = "order_id AS id, upper(status) AS loud"
    lake.configure(
        orders={**plain, "schema": schema, "select": select, "target": target},
    )
    try:
        found = json.loads(previewed(lake, "-n", "0", "--json", spark=rivermouth_spark))
    finally:
        lake.configure(orders=upsert_pipeline(TOPIC))
    rows = {row["id"]: row["loud"] for each in found["records"] for row in each.get("rows", [])}
    assert rows == dict.fromkeys(range(8), "OPEN")


def test_records_are_decoded_as_the_pipeline_would_and_bad_ones_have_the_reason(lake: Lake) -> None:
    good, bad, gone, strange = peeked(lake, "-n", "4")
    assert good["value"]["order_id"] == 7
    assert good["key"] == "7"
    assert bad["bad"].startswith("RM6")
    assert bad["value"] == "{oops"
    assert gone["value"] is None
    assert strange["key_base64"] == "/w=="
    assert strange["value_base64"] == "/v8="
    assert [each["offset"] for each in peeked(lake, "--raw", "-n", "2")] == [4, 5]


def test_one_begins_where_one_likes(lake: Lake) -> None:
    assert {e["offset"] for e in peeked(lake, "-o", "beginning", "-n", "2", "--raw")} <= {0, 1}
    assert sorted((e["partition"], e["offset"]) for e in peeked(lake, "-o", "-1", "--raw")) == [
        (0, 5),
        (1, 4),
    ]
    assert {each["offset"] for each in peeked(lake, "-o", "3", "--raw")} == {3, 4, 5}
    assert len(peeked(lake, "--from", "1h", "-n", "0", "--raw")) == 11
    assert peeked(lake, "--from", "0s", "--raw") == []
    assert [each["key"] for each in peeked(lake, "--key", "7", "--raw")] == ["7"] * 3


def test_what_is_wrong_is_one_line(lake: Lake) -> None:
    for words, said in (
        ((TOPIC, "-o", "last"), "write beginning"),
        ((TOPIC, "-o", "1", "--from", "1h"), "write one of -o and --from"),
        ((TOPIC, "--pipeline", "nobody"), "orders"),
        (("peek-nothing",), "RM302"),
    ):
        done = lake.command("peek", *words)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_one_follows_what_comes(lake: Lake) -> None:
    heard, come = list[dict[str, Any]](), threading.Event()

    def wait(seconds: float) -> None:
        if heard:
            raise KeyboardInterrupt
        if not come.is_set():
            come.set()
            lake.produce(TOPIC, [(b"9", order(9, "new", 9), 0)])

    config = load(lake.file)
    asked = Peek(TOPIC, pipeline=config.pipelines["orders"])
    with pytest.raises(KeyboardInterrupt):
        follow(config, asked, unresolved, heard.append, wait)
    assert [each["value"]["status"] for each in heard] == ["new"]
