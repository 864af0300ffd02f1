"""Trying whether an engine replaces rows by key, and what a table may not bring along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter

from rivermouth.errors import SchemaDiffers, UpsertUnsupported
from rivermouth.spark.tables import Address
from rivermouth.warehouse.tables import add_tombstone_column, check_target, create_target
from rivermouth.write.landings.replace_using import check_replace
from tests.spark.conftest import Bench, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def target(bench: Bench) -> Iterator[Address]:
    """A table in a catalog."""
    schema = f"probed_{bench.folder.name.rpartition('_')[2]}"
    bench.spark.sql(f"CREATE SCHEMA `{schema}` LOCATION '{bench.folder}'")
    address = Address(name=("spark_catalog", schema, "orders"))
    create_target(bench.spark, a_pipeline(), address)
    yield address
    bench.spark.sql(f"DROP SCHEMA `{schema}` CASCADE")


def tables(bench: Bench, target: Address) -> list[str]:
    found = bench.spark.sql(f"SHOW TABLES IN `{target.name[1]}`").collect()
    return [each["tableName"] for each in found if not each["isTemporary"]]  # views of other tests


def commits(bench: Bench, target: Address) -> int:
    return bench.spark.sql(f"DESCRIBE HISTORY {target.sql}").count()


def test_an_engine_that_replaces_by_key_is_tried_once(bench: Bench, target: Address) -> None:
    check_replace(bench.spark, target)
    assert tables(bench, target) == ["orders"], "what was tried is gone"
    before = commits(bench, target)
    check_replace(bench.spark, target)
    assert commits(bench, target) == before, "it is noted with the table"


@pytest.mark.thorough
@pytest.mark.parametrize("ignored", ["replaceUsing", "userMetadata", "txnVersion"])
def test_an_engine_that_passes_over_an_option_is_refused_before_it_costs_a_row(
    bench: Bench, target: Address, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    real = DataFrameWriter.options
    together = {"txnVersion": ("txnVersion", "txnAppId")}.get(ignored, (ignored,))

    def options(writer: DataFrameWriter, **given: Any) -> DataFrameWriter:
        return real(writer, **{k: v for k, v in given.items() if k not in together})

    monkeypatch.setattr(type(bench.spark.range(1).write), "options", options)
    with pytest.raises(UpsertUnsupported) as refused:
        check_replace(bench.spark, target)
    assert "rows [(1, 'again')" in refused.value.found or "metadata" in refused.value.found
    assert tables(bench, target) == ["orders"], "what was tried is gone"


def test_a_column_that_is_called_like_our_mark_is_not_taken_for_it(
    bench: Bench, target: Address
) -> None:
    bench.spark.sql(f"ALTER TABLE {target.sql} ADD COLUMN (_tombstone BOOLEAN)")
    with pytest.raises(SchemaDiffers, match="_tombstone of somebody else's"):
        check_target(bench.spark, a_pipeline(), target)


def test_our_own_mark_is_known_again(bench: Bench, target: Address) -> None:
    add_tombstone_column(bench.spark, target)
    add_tombstone_column(bench.spark, target)
    check_target(bench.spark, a_pipeline(), target)
