"""DELETEs of others where one offset may be that of two rows: which row may be gone, and which not.

Six records of an old topic were read, and the new topic has records 0 to 3. ``resume --accept
topic`` leaves the rows of the old one in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verify.ledger.commits import Commit
from tests.unit.verify.doubles import CREATE, commit
from tests.unit.verify.test_accepted_changes import (
    NEW,
    OLD,
    OTHER,
    RECREATED,
    changed,
    checked,
    wrote,
)
from tests.unit.verify.test_erased import delete, named
from tests.unit.verify.test_unchecked import found

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
