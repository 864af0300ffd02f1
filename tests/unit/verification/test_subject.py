"""What a subject says of offsets, and how it finds readers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.verification.ledger.entry import LedgerRange
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    SCHEMA,
    ZERO,
    MemorySource,
    configured,
    entry,
    span,
    subject,
)

pytestmark = pytest.mark.unit

OTHER = ("t", 1)
KEYED = {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}


def test_readers_are_those_that_the_configuration_names(tmp_path: Path) -> None:
    keyed = subject(configured(tmp_path, key="string", **KEYED), MemorySource())
    assert keyed.reader(SCHEMA, ["n", "id"], {})(b'{"id":1,"n":2}') == (2, 1)
    read_key = keyed.key_reader(SCHEMA, "string", {})
    assert read_key is not None
    assert read_key(b"7") == (7,)
    plain = subject(configured(tmp_path), MemorySource())
    assert plain.key_reader(SCHEMA, None, {}) is None
    with pytest.raises(Unreadable, match="of the form rot13"):
        plain.key_reader(SCHEMA, "rot13", {})


def test_a_column_type_that_the_format_does_not_have_makes_the_table_unreadable(
    tmp_path: Path,
) -> None:
    odd = pa.schema([("id", pa.duration("us"))])
    with pytest.raises(Unreadable, match="verify cannot read id: a column of type duration"):
        subject(configured(tmp_path), MemorySource()).reader(odd, ["id"], {})


def test_before_the_first_readable_entry_lies_what_log_clean_up_removed(tmp_path: Path) -> None:
    first = entry(5, span(10, 20), position={ZERO: 20, OTHER: 7})
    trimmed = subject(configured(tmp_path), MemorySource(), first, trimmed=True)
    assert [trimmed.before_ledger(ZERO, each) for each in (9, 10)] == [True, False]
    assert [trimmed.before_ledger(OTHER, each) for each in (6, 7)] == [True, False]
    assert trimmed.before_ledger(("t", 2), 0) is False
    whole = subject(configured(tmp_path), MemorySource(), first)
    assert whole.before_ledger(ZERO, 9) is False


def test_covered_offsets_that_kafka_does_not_show_are_not_verifiable(tmp_path: Path) -> None:
    part = subject(
        configured(tmp_path), MemorySource(), entry(1, span(2, 9)), readable={ZERO: (4, 8)}
    )
    verdicts = {each: part.not_verifiable(ZERO, each) for each in (1, 2, 3, 4, 7, 8, 9)}
    assert [each for each, verdict in verdicts.items() if verdict] == [2, 3, 8]
    assert part.not_verifiable(OTHER, 0) is False


@pytest.mark.parametrize(
    ("readable", "compacted", "second", "visible", "countable"),
    [
        ((0, 9), frozenset[str](), span(5, 9), 4, True),
        ((1, 9), frozenset[str](), span(5, 9), 5, False),
        ((0, 4), frozenset[str](), span(5, 9), 5, False),
        ((0, 9), frozenset({"t"}), span(5, 9), 4, False),
        ((0, 9), frozenset({"t"}), span(5, 9), 5, True),
        ((0, 9), frozenset[str](), span(4, 9), 5, False),
    ],
)
def test_a_range_is_countable_where_every_record_of_it_is_there_and_its_own(
    tmp_path: Path,
    readable: tuple[int, int],
    compacted: frozenset[str],
    second: LedgerRange,
    visible: int,
    countable: bool,
) -> None:
    asked = subject(
        configured(tmp_path),
        MemorySource(compacted=compacted),
        entry(1, span(0, 5)),
        entry(2, second),
        readable={ZERO: readable},
    )
    its = asked.coverage.spans[ZERO]
    its.visible[0] = visible
    assert asked.countable(ZERO, its, 0) is countable
