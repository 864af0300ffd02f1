"""What a sound file means."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from rivermouth.config import (
    Column,
    Config,
    Format,
    Kafka,
    KeyFormat,
    Mode,
    Pipeline,
    Secret,
    Source,
    Start,
    TableName,
    Target,
)

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]

DESIGN = """\
version: 1
kafka:
  bootstrap.servers: ${env:KAFKA_BOOTSTRAP:-localhost:9092}
warehouse: ./lake                 # or catalog/schema names on Databricks
pipelines:
  bids:
    source: {topics: [bids], format: json}
    schema: "auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP"
    target: {table: bronze.bids}                       # mode: append
  orders:
    source: {topics: [orders], format: json, start: earliest}
    schema: "order_id BIGINT, status STRING, amount DECIMAL(12,2), updated_at TIMESTAMP"
    target: {table: silver.orders, mode: upsert, keys: [order_id], order_by: [updated_at]}
"""


def test_the_example_of_the_design_means_what_it_says(loads: Loads, tmp_path: Path) -> None:
    config = loads(DESIGN)
    assert config.version == 1
    assert config.path == tmp_path / "lake.yml"
    assert config.warehouse == tmp_path / "lake"
    assert config.trigger == timedelta(seconds=10)
    assert config.kafka.bootstrap_servers == "localhost:9092"
    assert list(config.pipelines) == ["bids", "orders"]
    assert config.pipelines["bids"] == Pipeline(
        name="bids",
        source=Source(topics=("bids",), format=Format.JSON),
        columns=(
            Column("auction", "BIGINT"),
            Column("bidder", "BIGINT"),
            Column("price", "BIGINT"),
            Column("at", "TIMESTAMP"),
        ),
        target=Target(table=TableName("bronze", "bids")),
        trigger=timedelta(seconds=10),
    )
    assert config.pipelines["orders"].identity == {
        "table": "silver.orders",
        "mode": "upsert",
        "keys": ["order_id"],
        "order_by": ["updated_at"],
        "key": None,
    }


def test_what_is_left_out_has_the_documented_default(lake: str, loads: Loads) -> None:
    pipeline = loads(lake).pipelines["p"]
    assert pipeline.source.start == Start()
    assert pipeline.source.key is None
    assert pipeline.source.max_offsets_per_trigger == 500_000
    assert pipeline.source.options == {}
    assert pipeline.target.mode is Mode.APPEND
    assert (pipeline.target.keys, pipeline.target.order_by) == ((), ())
    assert pipeline.target.properties == {}


def test_every_field_reads_its_type_from_a_variable(lake: str, loads: Loads) -> None:
    text = lake.replace("version: 1", "version: ${env:V}")
    text = text.replace("warehouse: lake", "warehouse: ${env:W}\ntrigger: ${env:T}")
    text = text.replace(
        "{topics: [t], format: json}",
        '{topics: ["${env:N}", "x-${env:N}"], format: "${env:F}", key: "${env:K}",'
        ' max_offsets_per_trigger: "${env:MAX:-1000}", start: {"7": {0: "${env:N}"}}}',
    )
    text = text.replace("{table: s.t}", '{table: "${env:S}.t", mode: upsert, keys: [id]}')
    environ = {"V": "1", "W": "/w", "T": "2m", "N": "7", "F": "json", "K": "long", "S": "gold"}
    config = loads(text, environ)
    source = config.pipelines["p"].source
    assert (config.warehouse, config.trigger) == (Path("/w"), timedelta(minutes=2))
    assert source.topics == ("7", "x-7")
    assert (source.key, source.max_offsets_per_trigger) == (KeyFormat.LONG, 1000)
    assert source.start.of("7", 0) == 7
    assert config.pipelines["p"].target.table == TableName("gold", "t")


def test_spark_names_are_aliases(lake: str, loads: Loads) -> None:
    text = lake.replace(
        "topics: [t], ",
        'subscribe: "t, u", maxOffsetsPerTrigger: 9, failOnDataLoss: true,'
        ' startingOffsets: \'{"t": {"0": 23, "1": -1, "2": -2}}\', ',
    )
    source = loads(text).pipelines["p"].source
    assert source.topics == ("t", "u")
    assert source.max_offsets_per_trigger == 9
    ends = [source.start.of("t", partition) for partition in range(4)]
    assert ends == [23, "latest", "earliest", "earliest"]
    assert source.start.of("u", 0) == "earliest"


def test_a_pipeline_may_have_its_own_trigger(lake: str, loads: Loads) -> None:
    text = lake.replace("warehouse: lake", "warehouse: lake\ntrigger: 1h")
    assert loads(text).pipelines["p"].trigger == timedelta(hours=1)
    assert loads(text + "    trigger: 500ms\n").pipelines["p"].trigger == timedelta(
        milliseconds=500
    )


def test_anchors_and_merge_keys_work(lake: str, loads: Loads) -> None:
    text = lake.replace("source: {", "source: &json {kafka.max.poll.records: 50, ")
    text += (
        "  q:\n    source: {<<: *json, topics: [u]}\n    schema: id INT\n    target: {table: s.q}\n"
    )
    source = loads(text).pipelines["q"].source
    assert (source.topics, source.format) == (("u",), Format.JSON)
    assert source.options == {"kafka.max.poll.records": "50"}


def test_options_and_properties_stay_word_for_word(lake: str, loads: Loads) -> None:
    text = lake.replace('"k:9092"', '"k:1", a.b: true, c: 0500, d: 1e3, e: "x"')
    text = text.replace("{table: s.t}", "{table: s.t, properties: {delta.x: true, y: 007}}")
    config = loads(text)
    options = {"bootstrap.servers": "k:1", "a.b": "true", "c": "0500", "d": "1e3", "e": "x"}
    assert config.kafka.options == options
    assert config.pipelines["p"].target.properties == {"delta.x": "true", "y": "007"}


def test_secrets_are_revealed_only_on_request(lake: str, loads: Loads) -> None:
    text = lake.replace(
        '"k:9092"',
        '"k:1", sasl.username: me, sasl.password: hunter2, ssl.keystore.key: pem,'
        ' sasl.jaas.config: "${env:JAAS}"',
    )
    config = loads(text, {"JAAS": "hunter3"})
    options = config.kafka.options
    assert options["sasl.username"] == "me"
    for name, value in (
        ("sasl.password", "hunter2"),
        ("ssl.keystore.key", "pem"),
        ("sasl.jaas.config", "hunter3"),
    ):
        secret = options[name]
        assert isinstance(secret, Secret)
        assert secret.reveal() == value
    shown = f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"
    assert "hunter" not in shown
    assert "********" in shown
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(config)


def test_a_config_without_secrets_survives_pickling(lake: str, loads: Loads) -> None:
    config = loads(lake)
    assert pickle.loads(pickle.dumps(config)) == config


def test_models_refuse_what_files_may_not_say() -> None:
    source = Source(topics=("t",), format=Format.JSON)
    with pytest.raises(ValidationError):
        Pipeline(
            name="p",
            source=source,
            columns=(Column("id", "INT"),),
            target=Target(table=TableName("s", "t"), mode=Mode.UPSERT),
        )
    with pytest.raises(ValidationError) as refused:
        Kafka(options={"bootstrap.servers": "k:1", "kafka.password": "hunter2"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ValidationError):
        source.topics = ("u",)  # the models are frozen


def test_two_pipelines_may_share_a_table_if_they_agree(
    lake: str, loads: Loads, problems: Problems
) -> None:
    again = "  q:\n    source: {topics: [u], format: json}\n    schema: id BIGINT, at TIMESTAMP\n"
    assert len(loads(f"{lake}{again}    target: {{table: s.t}}\n").pipelines) == 2
    other = again.replace("at TIMESTAMP", "at DATE")
    (line,) = problems(f"{lake}{other}    target: {{table: s.t}}\n")
    assert "with another schema" in line


def test_a_schema_may_be_folded_over_several_lines(loads: Loads) -> None:
    folded = """schema: >-
      auction BIGINT, bidder BIGINT,
      price BIGINT, at TIMESTAMP"""
    text = DESIGN.replace(
        'schema: "auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP"', folded
    )
    assert text != DESIGN
    assert loads(text).pipelines == loads(DESIGN).pipelines
