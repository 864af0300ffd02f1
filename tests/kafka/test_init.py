"""``init`` and ``schema infer`` at real topics of each format, with a real registry."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.cli import inferring
from rivermouth.config import load, unresolved
from rivermouth.formats.arrow import SKIPPED
from rivermouth.local.broker import Broker
from rivermouth.local.registry import LocalRegistry
from rivermouth.operate.facts import connected
from rivermouth.operate.sample import decoded_messages
from rivermouth.testing import create_topic, produce
from tests.commands import Done, command, scratch_in
from tests.kafka.made_topics import Made, made_avro, made_events, made_json, made_protobuf
from tests.lake import order
from tests.pages import page, snippets
from tests.reading import rows_at
from tests.records.conftest import Registering, avro, framed, record

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MAKING: Mapping[str, Callable[[int, str, Registering], Made]] = {
    "json": lambda seed, topic, registering: made_json(seed),
    "avro": made_avro,
    "protobuf": made_protobuf,
    "events": lambda seed, topic, registering: made_events(seed),
}


def rivermouth(folder: Path, *words: str, spark: SparkSession | None = None) -> Done:
    """The command in a folder."""
    return command(*words, folder=folder, environ=scratch_in(folder / "scratch"), spark=spark)


def taken(file: Path) -> dict[str, int]:
    """How many records of each topic the pipelines of a file take: they are rows, or delete one."""
    config, found = load(file), dict[str, int]()
    kafka = connected(config, unresolved)
    for pipeline in config.pipelines.values():
        [topic] = pipeline.source.topics
        marks = kafka.facts([topic]).watermarks
        ranges = {place: (its.low, its.high) for place, its in marks.items()}
        messages = [each for each in kafka.records_within(ranges) if each.value() is not None]
        codes = decoded_messages(config, pipeline, messages, unresolved)["code"]
        found[topic] = sum(code in (None, SKIPPED) for code in codes)
    return found


@pytest.mark.short(("count",), {(2,)})
@pytest.mark.parametrize("count", [2, 30])
@pytest.mark.parametrize("kind", MAKING)
def test_the_file_takes_what_a_person_would_take(
    kind: str,
    count: int,
    tmp_path: Path,
    rivermouth_broker: Broker,
    rivermouth_registry: LocalRegistry,
    request: pytest.FixtureRequest,
) -> None:
    servers, registering = rivermouth_broker.bootstrap_servers, Registering(rivermouth_registry.url)
    made = dict[str, Made]()
    for seed in range(count):
        topic = f"init-{kind}-{count}-{seed}"
        create_topic(servers, topic, 2)
        made[topic] = MAKING[kind](seed, topic, registering)
        pairs = enumerate(made[topic].records)
        produce(servers, topic, [(key, value, n % 2) for n, (key, value) in pairs])

    places = ["--bootstrap-servers", servers, "--registry", rivermouth_registry.url]
    done = rivermouth(tmp_path, "init", *made, *places, "-n", "100")

    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert rivermouth(tmp_path, "validate", "lake.yml").returncode == 0
    found = taken(tmp_path / "lake.yml")
    assert found.keys() == made.keys()
    good = {topic: each.good for topic, each in made.items()}
    assert sum(found.values()) >= 0.99 * sum(good.values()), (found, good)
    if kind == "events":
        pipelines = load(tmp_path / "lake.yml").pipelines.values()
        assert {each.target.mode for each in pipelines} == {"upsert"}
        assert {each.target.keys for each in pipelines} == {("id",)}
    if (kind, count) == ("json", 2):
        spark = request.getfixturevalue("rivermouth_spark")
        ran = rivermouth(tmp_path, "run", "lake.yml", spark=spark)
        assert ran.returncode == 0, ran.stderr
        for topic, rows in found.items():
            table = tmp_path / "lake" / "bronze" / topic.replace("-", "_")
            assert len(rows_at(table)) == rows


ORDERS, CUSTOMERS = "shop.orders", "shop.customers"


@pytest.fixture(scope="module")
def shop(rivermouth_broker: Broker, rivermouth_registry: LocalRegistry) -> list[str]:
    """The topics of the page; where they are as a command has it."""
    servers = rivermouth_broker.bootstrap_servers
    for topic in (ORDERS, CUSTOMERS, "shop.empty", "shop.framed"):
        create_topic(servers, topic, 2)
    produce(servers, ORDERS, [(b"%d" % n, order(n, "open", n), n % 2) for n in range(20)])
    rows = ({"id": n, "since": f"2026-01-{n + 1:02d}"} for n in range(12))
    produce(servers, CUSTOMERS, [(None, json.dumps(each).encode(), 0) for each in rows])
    schema = record(("id", "long"))
    number = Registering(rivermouth_registry.url).avro("shop.framed-value", schema)
    produce(servers, "shop.framed", [(None, framed(number, avro(schema)({"id": 1})), 0)])
    return ["--bootstrap-servers", servers]


def placed(line: str, shop: list[str], registry: LocalRegistry) -> list[str]:
    """The words of a command of the page, for this broker and this registry."""
    there = {"localhost:9092": shop[1], "http://localhost:8081": registry.url}
    return [there.get(each, each) for each in shlex.split(line, comments=True)[1:]]


def test_each_command_of_the_page_ends_well(
    tmp_path: Path, shop: list[str], rivermouth_registry: LocalRegistry
) -> None:
    for line in "".join(snippets(page("init"), "sh")).splitlines():
        if not line.startswith("rivermouth run"):
            done = rivermouth(tmp_path, *placed(line, shop, rivermouth_registry))
            assert done.returncode == 0, (line, done.stderr)
    [shown] = snippets(page("init"), "yaml")
    first, _, rest = (tmp_path / "lake.yml").read_text(encoding="utf-8").partition("version: 1\n")
    assert first.startswith("# Written by rivermouth init")
    assert rest.replace(f'"{shop[1]}"', "localhost:9092") == shown.partition("version: 1\n")[2]


def test_the_schema_alone_is_printed(tmp_path: Path, shop: list[str]) -> None:
    done = rivermouth(tmp_path, "schema", "infer", ORDERS, *shop)
    assert done.stdout == (
        "order_id BIGINT,\nstatus STRING,\namount STRING,\nupdated_at TIMESTAMP\n"
    )
    told = json.loads(rivermouth(tmp_path, "schema", "infer", ORDERS, *shop, "--json").stdout)
    assert told["schema"] == done.stdout.rstrip()
    assert (told["samples"], told["taken"]) == (20, 20)
    assert told["keys"][0]["columns"] == ["order_id"]
    assert [*tmp_path.glob("*.yml")] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["init", "shop.nothing"], 1, "RM302"),
        (["init", ORDERS, "shop.nothing"], 1, "RM302"),
        (["init", "shop.empty"], 2, "RM706 shop.empty: it has no record"),
        (["init", "shop.framed"], 2, "--registry URL"),
        (["init", "shop.framed", "--registry", "http://localhost:1"], 1, "RM305"),
        (["init", ORDERS, "--mode", "upsert", "--key", "ordr_id"], 2, "ordr_id"),
        (["init", CUSTOMERS, "--mode", "upsert"], 2, "no record key holds columns of it"),
        (["init", ORDERS, "--key", "order_id"], 2, "--mode upsert"),
        (["init", ORDERS, "-X", "nothing"], 2, "NAME=VALUE"),
        (["init", ORDERS, "-o", "nowhere/lake.yml"], 2, "RM703 nowhere/lake.yml: its folder"),
        (["init", ORDERS, "-X", "isolation.level=read_uncommitted"], 2, "RM111"),
        (["schema", "infer", "shop.empty"], 2, "RM706"),
    ],
)
def test_what_is_wrong_is_a_line_and_nothing_is_written(
    tmp_path: Path, shop: list[str], words: list[str], code: int, said: str
) -> None:
    done = rivermouth(tmp_path, *words, *shop)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "lake.yml").exists()


@pytest.mark.thorough
def test_a_broker_that_is_away_is_a_line(tmp_path: Path) -> None:
    done = rivermouth(tmp_path, "init", ORDERS, "--bootstrap-servers", "localhost:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("RM301 ")
    assert rivermouth(tmp_path, "init", ORDERS).returncode == 2


def test_a_topic_that_nobody_can_tell_is_left_out_and_a_file_is_not_replaced(
    tmp_path: Path, shop: list[str]
) -> None:
    done = rivermouth(tmp_path, "init", ORDERS, "shop.empty", *shop)
    assert done.returncode == 5
    assert done.stderr.startswith("RM706 shop.empty: ")
    assert [*load(tmp_path / "lake.yml").pipelines] == ["shop_orders"]
    again = rivermouth(tmp_path, "init", ORDERS, *shop)
    assert again.returncode == 2
    assert again.stderr.startswith("RM703 lake.yml: the file is there")
    assert rivermouth(tmp_path, "init", ORDERS, *shop, "--force").returncode == 0


def test_rows_by_key_delete_by_the_record_key_that_holds_it(
    tmp_path: Path, shop: list[str]
) -> None:
    done = rivermouth(tmp_path, "init", ORDERS, "--mode", "upsert", *shop)
    assert done.returncode == 0, done.stderr
    [pipeline] = load(tmp_path / "lake.yml").pipelines.values()
    found: Any = pipeline.target.mode, pipeline.target.keys, pipeline.source.key
    assert found == ("upsert", ("order_id",), "string")
    assert str(pipeline.target.table) == "silver.shop_orders"


def test_at_a_terminal_it_asks_for_what_is_open(
    tmp_path: Path, shop: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inferring, "_on_terminal", lambda: True)
    answer = f"{shop[1]}\norder_id\n\n"
    done = command("init", ORDERS, CUSTOMERS, folder=tmp_path, answer=answer)
    assert done.returncode == 0, done.stderr
    assert "Bootstrap servers of the cluster, host:port: " in done.stdout
    assert f"{CUSTOMERS}: id: unique in 12 of 12 samples" in done.stdout
    modes = [each.target.mode for each in load(tmp_path / "lake.yml").pipelines.values()]
    assert modes == ["upsert", "append"]
