"""Values are read with the columns that each entry was written with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rivermouth.verify.formats.reader import Undecodable
from rivermouth.verify.proofs.decoding import EntryReaders
from tests.unit.verify.doubles import SCHEMA, MemorySource, configured, entry, span, subject, value

pytestmark = pytest.mark.unit

NOT_TOLD = entry(1, span(0, 10))
BEFORE = replace(entry(2, span(10, 20)), columns=("id",))
AFTER = replace(entry(3, span(20, 30)), columns=("id", "n"))
BAD = b'{"id": 1, "n": "no number"}'


def test_a_column_that_an_entry_did_not_know_is_null_whatever_the_record_holds(
    tmp_path: Path,
) -> None:
    asked = subject(configured(tmp_path), MemorySource(), NOT_TOLD, BEFORE, AFTER)
    readers = EntryReaders(asked, SCHEMA, ["id", "n"])
    assert [readers.of(each)(value(1, 5)) for each in range(3)] == [(1, 5), (1, None), (1, 5)]
    assert readers.of(1)(BAD) == (1, None)
    for knowing in (0, 2):
        with pytest.raises(Undecodable):
            readers.of(knowing)(BAD)


def test_columns_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    asked = subject(configured(tmp_path), MemorySource(), BEFORE, AFTER)
    readers = EntryReaders(asked, SCHEMA, ["n", "id"])
    assert [readers.of(each)(value(1, 5)) for each in range(2)] == [(None, 1), (5, 1)]
