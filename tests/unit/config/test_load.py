"""What a sound file means."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from rivermouth.config import (
    Catalog,
    Column,
    Config,
    Kafka,
    Pipeline,
    Secret,
    SecretName,
    Source,
    Start,
    TableName,
    Target,
    Topics,
    load,
    unresolved,
)
from rivermouth.errors import ConfigError, SecretUnavailable

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
        source=Source(topics=Topics(("bids",)), format="json"),
        ddl=(
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
    assert pipeline.source.min_offsets_per_trigger is None
    assert pipeline.source.max_trigger_delay == timedelta(minutes=15)
    assert pipeline.source.max_rate_per_partition is None
    assert pipeline.source.min_partitions is None
    assert pipeline.source.max_records_per_partition is None
    assert pipeline.source.options == {}
    assert pipeline.target.mode == "append"
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
    assert source.topics.names == ("7", "x-7")
    assert (source.key, source.max_offsets_per_trigger) == ("long", 1000)
    assert source.start.of("7", 0) == 7
    assert config.pipelines["p"].target.table == TableName("gold", "t")


def test_spark_names_are_aliases(lake: str, loads: Loads) -> None:
    text = lake.replace(
        "topics: [t], ",
        'subscribe: "t, u", maxOffsetsPerTrigger: 9, failOnDataLoss: true,'
        ' startingOffsets: \'{"t": {"0": 23, "1": -1, "2": -2}}\', ',
    )
    source = loads(text).pipelines["p"].source
    assert source.topics.names == ("t", "u")
    assert source.max_offsets_per_trigger == 9
    ends = [source.start.of("t", partition) for partition in range(4)]
    assert ends == [23, "latest", "earliest", None]
    assert source.start.of("u", 0) == "earliest"


@pytest.mark.parametrize(
    "written",
    [
        "min_offsets_per_trigger: 5, max_trigger_delay: 2m, max_rate_per_partition: 7,"
        " min_partitions: 3, max_records_per_partition: 900",
        "minOffsetsPerTrigger: 5, maxTriggerDelay: 2m, max_rate_per_partition: 7,"
        " minPartitions: 3, maxRecordsPerPartition: 900",
    ],
    ids=["our names", "Spark's names"],
)
def test_rates_and_tasks_are_settings_of_the_source(written: str, lake: str, loads: Loads) -> None:
    source = loads(lake.replace("topics: [t], ", f"topics: [t], {written}, ")).pipelines["p"].source
    assert (source.min_offsets_per_trigger, source.max_trigger_delay) == (5, timedelta(minutes=2))
    assert source.max_rate_per_partition == 7
    assert (source.min_partitions, source.max_records_per_partition) == (3, 900)


def test_a_minimum_may_be_as_much_as_the_limit(lake: str, loads: Loads) -> None:
    both = "topics: [t], max_offsets_per_trigger: 9, min_offsets_per_trigger: 9, "
    assert loads(lake.replace("topics: [t], ", both)).pipelines


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
    assert (source.topics.names, source.format) == (("u",), "json")
    assert source.options == {"kafka.max.poll.records": "50"}


def test_options_and_properties_stay_word_for_word(lake: str, loads: Loads) -> None:
    text = lake.replace('"k:9092"', '"k:1", a.b: true, c: 0500, d: 1e3, e: "x"')
    text = text.replace("{table: s.t}", "{table: s.t, properties: {delta.x: true, y: 007}}")
    config = loads(text)
    options = {"bootstrap.servers": "k:1", "a.b": "true", "c": "0500", "d": "1e3", "e": "x"}
    assert config.kafka.options == options
    assert config.pipelines["p"].target.properties == {"delta.x": "true", "y": "007"}


SASL = "security.protocol: SASL_SSL, sasl.mechanism"
BOTH_CAN = [
    f"{SASL}: PLAIN, sasl.jaas.config: '${{secret:kafka/jaas}}'",
    f"{SASL}: AWS_MSK_IAM",
    f"{SASL}: GSSAPI",
    f"{SASL}: AWS_MSK_IAM, databricks.serviceCredential: msk",
    f"{SASL}: OAUTHBEARER, databricks.serviceCredential: c, rivermouth.login.provider: m:f",
    f"{SASL}: OAUTHBEARER, sasl.login.callback.handler.class: x.Y, rivermouth.login.provider: m:f",
    "security.protocol: SSL, ssl.truststore.location: /t.jks, ssl.ca.location: probe",
    "security.protocol: SSL, ssl.keystore.type: PKCS12, ssl.keystore.location: /me.p12",
]


@pytest.mark.parametrize("login", BOTH_CAN)
def test_a_login_that_both_clients_can_use_is_accepted(login: str, lake: str, loads: Loads) -> None:
    assert loads(lake.replace('"k:9092"', f'"k:9092", {login}')).pipelines


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


REFERRING = """{bootstrap.servers: "k:1", client.id: "${env:ID}-${secret:a/id}",
  sasl.mechanism: PLAIN,
  sasl.jaas.config: 'x.PlainLoginModule required username="me" password="${secret:kafka/p.w}";',
  sasl.password: "${secret:kafka/p.w}", literal: "$${secret:a/b}"}"""
JAAS = 'x.PlainLoginModule required username="me" password="hunter2";'


def test_a_secret_is_a_reference_until_somebody_who_knows_it_is_asked(
    lake: str, loads: Loads
) -> None:
    kafka = loads(lake.replace('{bootstrap.servers: "k:9092"}', REFERRING), {"ID": "7"}).kafka
    asked: list[SecretName] = []

    def knows(scope: str, key: str) -> str:
        asked.append(SecretName(scope, key))
        return {"a": "me", "kafka": "hunter2"}[scope]

    assert kafka.secret_names == [SecretName("a", "id"), SecretName("kafka", "p.w")]
    assert asked == []
    assert kafka.revealed(knows) == {
        "bootstrap.servers": "k:1",
        "client.id": "7-me",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
        "sasl.password": "hunter2",
        "literal": "${secret:a/b}",
    }
    kafka.revealed(knows)
    assert len(asked) == 6, "each time anew: nothing that was told is kept"
    shown = f"{kafka!r} {kafka} {kafka.model_dump()} {kafka.model_dump_json()}"
    assert "hunter" not in shown
    assert "PlainLoginModule" not in shown, "what stands around a secret may be one too"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kafka)


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("${env:SCOPE}/pw", SecretName("team-prod", "pw")),
        ("team-${env:TARGET}/${env:NONE:-pw}", SecretName("team-prod", "pw")),
        ("${env:BOTH}", SecretName("team-prod", "pw")),
    ],
)
def test_the_name_of_a_secret_may_be_made_with_variables(
    lake: str, loads: Loads, reference: str, named: SecretName
) -> None:
    text = lake.replace('"k:9092"', f'"k:1", a: "${{secret:{reference}}}"')
    environ = {"SCOPE": "team-prod", "TARGET": "prod", "BOTH": "team-prod/pw"}
    assert loads(text, environ).kafka.secret_names == [named]


def test_what_a_secret_or_a_variable_holds_is_no_reference(lake: str, loads: Loads) -> None:
    text = lake.replace('"k:9092"', '"k:1", a: "${secret:s/k}", b: "${env:B}"')
    kafka = loads(text, {"B": "${secret:s/k}"}).kafka
    told = kafka.revealed(lambda scope, key: "${env:B}${secret:s/k}")
    assert (told["a"], told["b"]) == ("${env:B}${secret:s/k}", "${secret:s/k}")


def test_without_anybody_who_knows_secrets_the_error_names_scope_and_key(
    lake: str, loads: Loads
) -> None:
    kafka = loads(lake.replace('"k:9092"', '"k:1", a: "hunter${secret:s/k}"')).kafka
    with pytest.raises(SecretUnavailable) as caught:
        kafka.revealed(unresolved)
    assert str(caught.value).startswith("RM207 s/k: nothing here reads secrets. ")
    assert "hunter" not in str(caught.value)


def test_a_secret_may_come_by_merge_or_alias_into_the_section_kafka(
    lake: str, loads: Loads
) -> None:
    login = '{<<: {a: "${secret:s/k}"}, b: &b "${secret:s/l}", c: *b, bootstrap.servers: "k:1"}'
    kafka = loads(lake.replace('{bootstrap.servers: "k:9092"}', login)).kafka
    told = kafka.revealed(lambda scope, key: f"{scope}-{key}")
    assert (told["a"], told["b"], told["c"]) == ("s-k", "s-l", "s-l")


def test_a_config_without_secrets_survives_pickling(lake: str, loads: Loads) -> None:
    config = loads(lake)
    assert pickle.loads(pickle.dumps(config)) == config


def test_models_refuse_what_files_may_not_say() -> None:
    source = Source(topics=Topics(("t",)), format="json")
    with pytest.raises(ValidationError):
        Pipeline(
            name="p",
            source=source,
            ddl=(Column("id", "INT"),),
            target=Target(table=TableName("s", "t"), mode="upsert"),
        )
    with pytest.raises(ValidationError) as refused:
        Kafka(options={"bootstrap.servers": "k:1", "kafka.password": "hunter2"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ValidationError):
        source.topics = Topics(("u",))  # the models are frozen


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


def test_tables_may_lie_in_a_catalog(lake: str, loads: Loads) -> None:
    names = loads(lake.replace("warehouse: lake", "warehouse: {catalog: main}")).warehouse
    assert names == Catalog("main", "rivermouth", "state")
    all_named = "warehouse: {catalog: ${env:C}, schema: s, volume: v}".replace(
        "${env:C}", '"${env:C}"'
    )
    config = loads(lake.replace("warehouse: lake", all_named), {"C": "dev"})
    assert config.warehouse == Catalog("dev", "s", "v")


def test_what_looks_into_a_folder_says_so_where_there_is_a_catalog(lake: str, loads: Loads) -> None:
    config = loads(lake.replace("warehouse: lake", "warehouse: {catalog: main}"))
    with pytest.raises(ConfigError, match="the tables are in the catalog main"):
        _ = config.files


def test_a_folder_may_take_the_place_of_the_warehouse(lake: str, tmp_path: Path) -> None:
    file = tmp_path / "lake.yml"
    file.write_text(lake.replace("warehouse: lake", "warehouse: {catalog: main}"))
    assert load(file, {}, folder=tmp_path / "here").files == tmp_path / "here"
