"""A column is added while a pipeline lives: rows from before stay null, and the proof knows it."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verification import verify
from rivermouth.verification.result import Kind
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def with_column(pipeline: dict[str, Any], column: str) -> dict[str, Any]:
    return {**pipeline, "schema": f"{pipeline['schema']}, {column}"}


@pytest.mark.thorough
def test_rows_from_before_a_column_was_added_are_proven_and_what_differs_is_still_found(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("added-a")
    lake.topic("added-u")
    # Both know a field that no column is for yet; in one record it fits no integer.
    first = [bid(1)[:-1] + b', "more": 5}', bid(2)[:-1] + b', "more": "text"}']
    lake.produce("added-a", [(None, each, 0) for each in first])
    lake.produce("added-u", [(b"1", order(1, "x", 1)[:-1] + b', "more": 5}', 0)])
    a, u = append_pipeline("added-a"), upsert_pipeline("added-u")
    lake.configure(a=a, u=u)
    lake.run(rivermouth_spark, "a", "u")
    for table in ("bronze.added_a", "silver.added_u"):
        columns = Schema([Field("more", PrimitiveType("long"))]).fields
        DeltaTable(str(lake.path(table))).alter.add_columns(columns)
    lake.configure(a=with_column(a, "more BIGINT"), u=with_column(u, "more BIGINT"))
    lake.produce("added-a", [(None, bid(3)[:-1] + b', "more": 6}', 0)])
    lake.produce("added-u", [(b"2", order(2, "x", 2)[:-1] + b', "more": 6}', 0)])
    lake.run(rivermouth_spark, "a", "u")

    values = {row["auction"]: row["more"] for row in lake.rows("bronze.added_a")}
    assert values == {1: None, 2: None, 3: 6}
    assert {row["order_id"]: row["more"] for row in lake.rows("silver.added_u")} == {1: None, 2: 6}
    for proof in verify(load(lake.file), strict=True).pipelines:
        assert proof.ok, proof.problems

    DeltaTable(str(lake.path("bronze.added_a"))).update({"more": "5"}, predicate="auction = 1")
    DeltaTable(str(lake.path("silver.added_u"))).update({"more": "null"}, predicate="order_id = 2")
    wrong = verify(load(lake.file)).pipelines
    assert [each.counts[Kind.DIFFERENT] for each in wrong] == [1, 1]
