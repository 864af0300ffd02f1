"""A table of a real PostgreSQL arrives by a real Debezium, and stays equal to its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.registry import LocalRegistry
from tests.cdc.connect import Debezium
from tests.cdc.postgres import Postgres
from tests.commands import command
from tests.lake import Lake
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

COLUMNS = "id BIGINT, name STRING NOT NULL, amount DECIMAL(12,2), born DATE, at TIMESTAMP"
COLUMNS += ", note STRING, counts ARRAY<BIGINT>, marks ARRAY<STRING>, lsn BIGINT"
NAMES = ("id", "name", "amount", "born", "note")
TABLE = """CREATE TABLE {} (id BIGINT PRIMARY KEY, name TEXT NOT NULL, amount NUMERIC(12,2),
 born DATE, at TIMESTAMPTZ, note TEXT, counts BIGINT[], marks UUID[])"""
LONG = ("note", "counts", "marks")
"""Long values lie beside the rows: an event tells none that has not changed."""
TOAST = "ALTER TABLE {} " + ", ".join(f"ALTER {each} SET STORAGE EXTERNAL" for each in LONG)
ARRAYS = ("counts", "marks")
CHANGES = (
    "INSERT INTO {} SELECT n, 'name ' || n, n / 7.0, DATE '2020-01-01' + n,"
    " TIMESTAMPTZ '2026-01-01 10:00:00.123456+02' + n * INTERVAL '1 hour',"
    " CASE WHEN n % 3 = 0 THEN repeat(md5(n::text), 200) END,"
    " CASE WHEN n % 4 = 0 THEN ARRAY(SELECT n * generate_series(1, 500)) END,"
    " CASE WHEN n % 4 = 1 THEN ARRAY(SELECT md5(k::text)::uuid FROM generate_series(1, 300) k) END"
    " FROM generate_series(1, 50) AS n",
    "UPDATE {} SET amount = NULL, name = 'new ''' || name WHERE id % 5 = 0",
    "DELETE FROM {} WHERE id % 7 = 0",
    "UPDATE {} SET id = id + 1000 WHERE id % 11 = 0"
    " AND coalesce(note, counts::text, marks::text) IS NULL",
    "INSERT INTO {} VALUES (7, 'again', 1.5, NULL, NULL, repeat('x', 9000))",
    "UPDATE {} SET amount = 3 WHERE id IN (7, 9)",
)


def source(database: Postgres, table: str) -> list[tuple[object, ...]]:
    text = "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
    arrays = ", ".join(f"array_to_string({each}, ',') AS {each}" for each in ARRAYS)
    names = f"{', '.join(NAMES)}, {arrays}, {text} AS at"
    rows = database.rows(f"SELECT {names} FROM {table} ORDER BY id")
    return [tuple(each.values()) for each in rows]


def target(lake: Lake, table: str) -> list[tuple[object, ...]]:
    def shown(value: object) -> object:
        return None if value is None else str(value)

    found: list[tuple[object, ...]] = []
    for each in sorted(lake.rows(table), key=lambda each: each["id"]):
        at = each["at"]
        when = None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.%f")
        arrays = (None if each[n] is None else ",".join(map(str, each[n])) for n in ARRAYS)
        found.append((*(shown(each[name]) for name in NAMES), *arrays, when))
    return found


def inferred(lake: Lake, topic: str, registry: LocalRegistry) -> None:
    """By its samples the topic is a table by key, in the order of the source."""
    places = ("--bootstrap-servers", lake.servers, "--registry", registry.url)
    made = command("init", topic, *places, folder=lake.folder)
    assert made.returncode == 0, made.stderr
    [pipeline] = load(lake.folder / "lake.yml").pipelines.values()
    its = pipeline.target
    assert (its.mode, its.keys, its.order_by) == ("upsert", ("id",), ("lsn",))
    assert pipeline.source.key == pipeline.source.format


@pytest.mark.takes_long("with schemas", "in Avro", "in Avro by header")
@pytest.mark.parametrize("written", ["bare", "with schemas", "in Avro", "in Avro by header"])
def test_a_table_stays_equal_to_its_source(
    database: Postgres,
    lake: Lake,
    rivermouth_spark: SparkSession,
    rivermouth_registry: LocalRegistry,
    written: str,
) -> None:
    table = f"people_{written.lower().replace(' ', '_')}"
    avro, by_header = "Avro" in written, "header" in written
    form: dict[str, str] = {"format": "avro" if avro else "json"}
    form |= {"framing": "header"} if by_header else {}
    lake = replace(lake, settings={"schema_registry": {"url": rivermouth_registry.url}})
    topic = f"shop{table}.public.{table}"
    lake.topic(topic, 3)
    database.run(*(each.format(table) for each in (TABLE, TOAST, CHANGES[0])))
    lake.configure(
        p={
            "source": {"topics": [topic], "envelope": "debezium", **form},
            "schema": COLUMNS,
            "columns": {"lsn": {"from": "$.source.lsn"}},
            "target": {
                "table": "silver.people",
                "mode": "upsert",
                "keys": ["id"],
                "order_by": ["lsn"],
            },
        }
    )

    def caught_up() -> bool:
        heard = lake.run(rivermouth_spark, "p")
        assert heard.ends[0].error is None, heard.ends[0].error
        return target(lake, "silver.people") == source(database, table)

    how: dict[str, Any] = {"schemas": "schemas" in written, "by_header": by_header}
    how |= {"registry": rivermouth_registry} if avro else {}
    with Debezium(database, lake.servers, f"shop{table}", table, **how):
        wait_for(caught_up)
        for each in CHANGES[1:]:
            database.run(each.format(table))
        wait_for(caught_up)
    assert not lake.path("silver.people_quarantine").exists()
    checked = lake.command("doctor")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    proved = lake.command("verify", "--strict")
    assert proved.returncode == 0, proved.stdout + proved.stderr
    inferred(lake, topic, rivermouth_registry)
