"""Which rows a DELETE took, on real tables: as runs of offsets, without those marked as deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.tables import Address
from rivermouth.warehouse.deleted_rows import deleted_rows
from tests.builders import span

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KAFKA = "named_struct('topic', 't', 'partition', CAST(id % 2 AS INT), 'offset', id DIV 2)"


def a_table(session: SparkSession, folder: Path, properties: str = "") -> Address:
    """Ids 0 to 19, even ones in partition 0, in several files; no place of 18 is known."""
    address = Address(path=str(folder / "table"))
    kafka = "STRUCT<topic: STRING, partition: INT, offset: BIGINT>"
    columns = f"id BIGINT, _tombstone BOOLEAN, _kafka {kafka}"
    session.sql(f"CREATE TABLE {address.sql} ({columns}) USING delta {properties}")
    place = f"IF(id = 18, NULL, {KAFKA})"
    marked = "IF(id = 6, true, NULL)"
    session.sql(f"INSERT INTO {address.sql} SELECT id, {marked}, {place} FROM range(0, 20, 1, 3)")
    return address


def took(
    session: SparkSession, address: Address, condition: str, *, shared: bool = False
) -> list[OffsetRange] | None:
    """What the DELETE on that condition took."""
    session.sql(f"DELETE FROM {address.sql} WHERE {condition}")
    [newest] = session.sql(f"DESCRIBE HISTORY {address.sql} LIMIT 1").collect()
    return deleted_rows(session, address, newest["version"], 3, shared)


@pytest.mark.thorough
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_what_a_delete_took_are_runs_of_offsets_however_it_was_written(
    rivermouth_spark: SparkSession, tmp_path: Path, vectors: str
) -> None:
    more = f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
    address = a_table(rivermouth_spark, tmp_path, more)
    # Of 6, which is marked, nothing counts; nor of 18, whose place nobody knows.
    found = took(rivermouth_spark, address, "id IN (0, 2, 4, 6, 8, 3, 18)")
    assert found == [span(0, 3), span(4, 5), span(1, 2, 1)]
    assert took(rivermouth_spark, address, "id = 5") == [span(2, 3, 1)]
    assert took(rivermouth_spark, address, "id IN (10, 14, 9, 13)") is None, "more than three runs"


@pytest.mark.thorough
def test_where_clean_up_took_the_version_before_it_nobody_can_tell(
    rivermouth_spark: SparkSession, tmp_path: Path
) -> None:
    address = a_table(rivermouth_spark, tmp_path)
    assert took(rivermouth_spark, address, "id = 5") == [span(2, 3, 1)]
    rivermouth_spark.sql(f"OPTIMIZE {address.sql}")
    table = DeltaTable(address.path)
    table.create_checkpoint()
    for version in range(table.version()):
        (tmp_path / "table" / "_delta_log" / f"{version:020d}.json").unlink()
    assert deleted_rows(rivermouth_spark, address, 2, 3, shared=False) is None


@pytest.mark.thorough
@pytest.mark.parametrize(("shared", "found"), [(True, [span(2, 3)]), (False, [])])
def test_of_two_rows_of_one_offset_one_may_be_deleted(
    rivermouth_spark: SparkSession, tmp_path: Path, shared: bool, found: list[OffsetRange]
) -> None:
    """As a topic that was created again leaves them; else one is a copy of the other."""
    address = a_table(rivermouth_spark, tmp_path)
    rivermouth_spark.sql(f"INSERT INTO {address.sql} SELECT 100, NULL, {KAFKA} FROM range(4, 5)")
    assert took(rivermouth_spark, address, "id = 4", shared=shared) == found
