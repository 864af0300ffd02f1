"""DELETEs of others where one offset may be that of two rows: which row may be gone, and which not.

Six records of an old topic were read, and the new topic has records 0 to 3. ``resume --accept
topic`` leaves the rows of the old one in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verification.ledger.entry import Commit
from tests.unit.verification.doubles import (
    CREATE,
    ZERO,
    MemorySource,
    commit,
    message,
    row,
    value,
)
from tests.unit.verification.test_accepted_changes import (
    NEW,
    OLD,
    OTHER,
    RECREATED,
    changed,
    checked,
    wrote,
)
from tests.unit.verification.test_erased import delete, named
from tests.unit.verification.test_unchecked import found

pytestmark = pytest.mark.unit

APPEND: Mapping[str, Any] = {}
UPSERT: Mapping[str, Any] = {"mode": "upsert", "keys": ["id"]}
ORDERED: Mapping[str, Any] = {**UPSERT, "order_by": ["n"]}
MODES = pytest.mark.parametrize(
    "target", [APPEND, UPSERT, ORDERED], ids=["append", "upsert", "ordered"]
)


def accepts(sequence: int, at: int, *deletes: Mapping[str, Any]) -> Commit:
    """An entry that moves nothing and names deleted rows."""
    return wrote(sequence, at, at, deletes=[*deletes], **OTHER)


def without(rows: Sequence[Mapping[str, Any]], *offsets: int) -> list[Mapping[str, Any]]:
    return [each for each in rows if each["_kafka"]["offset"] not in offsets]


BEFORE_THE_NEW = (
    CREATE,
    commit(1, 0, 6),
    changed(2, "topic", 6, 0, **OTHER),
    delete(2),
    accepts(3, 0, named(2, 2)),
    wrote(4, 0, 4, **OTHER),
)
"""Rows 2 and 3 of the old topic were deleted before anything of the new one was read."""


@MODES
def test_a_row_that_was_written_after_the_delete_must_be_there(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    old = without(OLD, 2, 3)
    assert found(checked(tmp_path, [*old, *NEW], BEFORE_THE_NEW, **target)) == {}
    lost = checked(tmp_path, [*old, *without(NEW, 2)], BEFORE_THE_NEW, **target)
    assert found(lost) == {"missing": 1}


@pytest.mark.parametrize("target", [UPSERT, ORDERED], ids=["upsert", "ordered"])
def test_a_delete_tells_nothing_of_keys_that_came_after_it(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    """Of key 102, the old topic may have left a row that no entry names."""
    lacks = checked(tmp_path, [*without(OLD, 2, 3), *NEW], BEFORE_THE_NEW, **target)
    assert (found(lacks), lacks.erased) == ({}, 0)


# One offset, two rows

ONE_DELETED = (*RECREATED, delete(1), accepts(4, 4, named(2, 1, version=4)))
"""One of the two rows at offset 2 was deleted, nobody can tell which."""


@MODES
@pytest.mark.parametrize(
    "rows", [[*OLD, *without(NEW, 2)], [*without(OLD, 2), *NEW]], ids=["the new", "the old"]
)
def test_of_two_rows_at_one_offset_either_may_be_the_one_that_was_deleted(
    tmp_path: Path, rows: Sequence[Mapping[str, Any]], target: Mapping[str, Any]
) -> None:
    assert found(checked(tmp_path, rows, ONE_DELETED, **target)) == {}
    more = checked(tmp_path, without(rows, 3), ONE_DELETED, **target)
    assert found(more) == {"missing": 1}, "no row of record 3 is named"


@pytest.mark.parametrize("target", [UPSERT, ORDERED], ids=["upsert", "ordered"])
def test_a_key_whose_row_is_from_before_the_delete_did_not_lose_it(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    """Records 2 and 3 of the new topic are of one key: the row of 3 stood, no row of 2."""
    records = [message(n, value(100 + min(n, 2), 1)) for n in range(4)]
    kafka = MemorySource({ZERO: records}, topics={"t": "id2"}, ends={ZERO: 4})
    rows = [*without(OLD, 2), *NEW[:2], row(102, 1, 3)]
    assert found(checked(tmp_path, rows, ONE_DELETED, kafka, **target)) == {}


TWO_DELETES = (
    *RECREATED[:3],
    delete(1),
    accepts(3, 0, named(1, 1, version=3)),
    wrote(4, 0, 4, **OTHER),
    delete(4),
    accepts(5, 4, named(0, 4, version=6)),
)
"""Row 1 of the old topic was deleted, later all four of the new one."""


@MODES
def test_an_offset_that_two_deletes_name_is_named_by_each(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    rows = without(OLD, 1)
    assert found(checked(tmp_path, rows, TWO_DELETES, **target)) == {}
    assert found(checked(tmp_path, rows, TWO_DELETES[:6], **target))["missing"] >= 1
