"""The MERGE of changes by key, as text: which clause comes first."""

from __future__ import annotations

import pytest

from rivermouth.spark.tables import Address
from rivermouth.write.landings.merge import merge_statement
from rivermouth.write.rows import Keyed

pytestmark = pytest.mark.unit

ROWS = Keyed(
    keys=("id",),
    fold=lambda good: good,
    delete="s.gone",
    update="s.newer",
    updates={"n": "t.n + s.n"},
    insert="s.there",
    inserts={"id": "s.key_columns.id", "n": "s.n"},
)


def clauses(*, marked: bool) -> list[str]:
    statement = merge_statement(Address(path="t"), ROWS, marked=marked)
    return [each.strip() for each in statement.split("WHEN ")[1:]]


def test_a_row_goes_before_it_is_updated_and_a_key_without_row_is_inserted() -> None:
    assert clauses(marked=False) == [
        "MATCHED AND (s.gone) THEN DELETE",
        "MATCHED AND (s.newer) THEN UPDATE SET t.`n` = t.n + s.n",
        "NOT MATCHED AND s.there THEN INSERT (`id`, `n`) VALUES (s.key_columns.id, s.n)",
    ]


def test_a_row_that_is_marked_as_deleted_counts_as_absent_before_anything_else() -> None:
    first, *others = clauses(marked=True)
    assert first == (
        "MATCHED AND t._tombstone AND (s.there) THEN UPDATE SET "
        "t.`id` = s.key_columns.id, t.`n` = s.n, t.`_tombstone` = NULL"
    )
    assert others == clauses(marked=False)
