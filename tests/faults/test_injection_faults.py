"""Names and data that mean something elsewhere: in SQL, in paths, in variables, in a log."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.errors import ConfigError
from rivermouth.local.broker import Broker
from rivermouth.operate.status import status
from rivermouth.run.tables import status_table as render
from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.lake import Lake, upsert_pipeline

TEXTS = (
    "a\nb",
    "a\r\nRM999 a line of nobody's",
    "\u202eabc\u202c",
    "\u2028",
    "../../etc/passwd",
    "'; DROP TABLE x; --",
    "${env:HOME}",
    "`x`",
    "%00",
    "\x1b[31mred",
    '"}{"id":"2"',
)


class Elsewhere(SparkLake):
    """A lake whose folder has a name that no folder should have."""

    @property
    def scratch(self) -> Path:
        return self.folder.parent / "scratch"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("table", "bronze.x`; DROP TABLE y; --"),
        ("table", "../../etc.passwd"),
        ("table", "bronze.$${env:HOME}"),
        ("table", "bronze.a\nb"),
        ("keys", ["id` OR true --"]),
        ("topics", ["../orders"]),
        ("topics", ["orders,others"]),
        ("topics", ["a\x00b"]),
        ("schema", "`a``b` STRING"),
        ("schema", "`${env:HOME}` STRING"),
        ("schema", "id STRING) USING csv --"),
        ("name", "../p"),
        ("name", "p'; --"),
    ],
)
def test_a_name_that_reaches_further_is_refused_by_the_configuration(
    tmp_path: Path, setting: str, value: object
) -> None:
    pipeline = upsert_pipeline("orders")
    place = {"topics": pipeline["source"], "schema": pipeline}.get(setting, pipeline["target"])
    name = str(value) if setting == "name" else "p"
    if setting != "name":
        place[setting] = value
    lake = Lake(tmp_path, "localhost:9092")

    with pytest.raises(ConfigError) as refused:
        lake.configure(**{name: pipeline})

    assert all(":" in line and " RM1" in line for line in refused.value.problems)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_columns_and_folders_with_quotes_are_quoted_and_data_stays_data(
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / 'la`ke\'s "x"; -- ü'
    folder.mkdir()
    lake = Elsewhere(folder, rivermouth_broker.bootstrap_servers, rivermouth_spark)
    topic = f"data.{uuid.uuid4()}"
    lake.topic(topic)
    pipeline = upsert_pipeline(topic)
    pipeline["schema"] = '`it\'s` STRING, `select` STRING, `"q"--/*x*/` STRING, `$x%20` STRING'
    pipeline["target"].update(table="silver.data", keys=["it's"], order_by=['"q"--/*x*/'])
    lake.configure(p=pipeline)
    produce_all(rivermouth_broker.bootstrap_servers, topic)
    capfd.readouterr()

    heard = lake.go()

    rows = lake.rows("silver.data")
    assert sorted(row["it's"] for row in rows) == sorted(TEXTS)
    assert all(row["it's"] == row["select"] == row['"q"--/*x*/'] == row["$x%20"] for row in rows)
    [bad] = lake.rows("silver.data_quarantine")
    assert (bad["key"], bad["value"]) == (b"\x00\xff", b"\xff\xfe\x00\n")
    check_proved(lake, records=len(TEXTS) + 4)
    lines = [each.line() for each in heard.opens] + [each.line() for each in heard.commits]
    lines += render(status(load(lake.file))).splitlines()
    assert all(line.isprintable() for line in lines), lines
    assert "".join(capfd.readouterr()) == "", "nothing of the data reaches a terminal"
    assert [each.name for each in folder.parent.iterdir() if each.name.startswith("la")] == [
        folder.name
    ]


def produce_all(servers: str, topic: str) -> None:
    """Each text as key, value and header; a NUL byte that comes and goes; one of no encoding."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    nul = "a\x00b"
    for text in (*TEXTS, nul):
        fields = ("it's", "select", '"q"--/*x*/', "$x%20")
        value = json.dumps(dict.fromkeys(fields, text)).encode()
        header: dict[str, str | bytes | None] = {text.replace("\x00", " "): text.encode()}
        producer.produce(topic, value, text.encode(), 0, headers=header)
    producer.produce(topic, None, nul.encode(), 0)
    producer.produce(topic, b"\xff\xfe\x00\n", b"\x00\xff", 0, headers={"h": None})
    producer.produce(topic, None, b"nobody", 0)
    assert producer.flush(30) == 0
