"""A schema that grows: the table gets the columns ahead of the first rows that need them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.lake import Heard

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

OLD, NEW = "id BIGINT, n BIGINT", "id BIGINT, city STRING, n BIGINT, home BOOLEAN"
WAYS: dict[str, dict[str, Any]] = {
    "append": {},
    "append through Spark": {"commit": "spark"},
    "upsert": {"mode": "upsert", "keys": ["id"], "order_by": ["n"]},
    "upsert by MERGE": {"mode": "upsert", "keys": ["id"], "order_by": ["n"], "commit": "spark"},
}


def configure(lake: SparkLake, topic: str, schema: str, **target: Any) -> None:
    source = {"topics": [topic], "format": "json"}
    lake.configure(p={"source": source, "schema": schema, "target": {"table": "t.grows", **target}})


def produce(lake: SparkLake, topic: str, first: int) -> None:
    values = ({"id": n, "n": n, "city": f"c{n}", "home": True} for n in range(first, first + 5))
    lake.produce(topic, [(None, json.dumps(each).encode(), 0) for each in values])


def rows(lake: SparkLake) -> list[tuple[Any, ...]]:
    table = DeltaTable(str(lake.path("t.grows")))
    statement = "SELECT id, n, city, home FROM t ORDER BY id"
    found = QueryBuilder().register("t", table).execute(statement).read_all()
    return [*zip(*(found.column(n).to_pylist() for n in range(4)), strict=True)]


@pytest.mark.takes_long("append through Spark", "upsert by MERGE")
@pytest.mark.parametrize("way", WAYS)
def test_a_new_column_is_added_and_null_in_the_rows_that_are_there(
    lake: SparkLake, way: str
) -> None:
    topic = f"grows-{way.replace(' ', '-').lower()}"
    lake.topic(topic, 1)
    configure(lake, topic, OLD, **WAYS[way])
    produce(lake, topic, 0)
    lake.go()
    configure(lake, topic, NEW, **WAYS[way])
    heard = Heard()
    lake.go(heard=heard)
    assert heard.opens[-1].added == ("city STRING", "home BOOLEAN")
    assert "; added to the table: city STRING, home BOOLEAN" in heard.opens[-1].line()
    produce(lake, topic, 5)
    heard = Heard()
    lake.go(heard=heard)
    assert heard.opens[-1].added == ()
    old = [(n, n, None, None) for n in range(5)]
    assert rows(lake) == [*old, *((n, n, f"c{n}", True) for n in range(5, 10))]
    check_proved(lake, records=10)


def test_what_is_not_asked_for_or_not_safe_halts_and_says_what_to_do(lake: SparkLake) -> None:
    lake.topic("halts", 1)
    configure(lake, "halts", OLD)
    produce(lake, "halts", 0)
    lake.go()

    configure(lake, "halts", NEW, on_schema_change="halt")
    halted = lake.refused()
    statement = f"ALTER TABLE delta.`{lake.path('t.grows')}` ADD COLUMNS (`city` STRING)"
    assert (halted.code, statement in halted.remedy) == ("RM414", True)

    configure(lake, "halts", "id INT, n BIGINT, city STRING")
    halted = lake.refused()
    assert (halted.code, "Write id BIGINT in schema" in halted.remedy) == ("RM414", True)
    assert "city" not in lake.spark.read.format("delta").load(str(lake.path("t.grows"))).columns

    lake.spark.sql(statement)  # as somebody else might, and as before a crash
    configure(lake, "halts", NEW)
    lake.go()
    table = f"delta.`{lake.path('t.grows')}`"
    mapping = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    lake.spark.sql(f"ALTER TABLE {table} {mapping}")
    produce(lake, "halts", 5)
    lake.go()
    lake.spark.sql(f"ALTER TABLE {table} DROP COLUMN city")
    halted = lake.refused()
    assert (halted.code, "city" in halted.what) == ("RM414", True), "its values are gone"


def test_a_table_that_is_not_of_the_pipeline_is_not_altered(lake: SparkLake) -> None:
    lake.topic("stranger", 1)
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path('t.grows')}` (id BIGINT) USING delta")
    configure(lake, "stranger", OLD)
    halted = lake.refused()
    assert (halted.code, "ADD COLUMNS (`n` BIGINT)" in halted.remedy) == ("RM414", True)
