"""One ledger with entries of several decoders: each record is judged by that of its entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config.formats import FORMATS, Format
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.ledger.entry import LedgerEntry
from rivermouth.verification.proofs.append import verify_append
from rivermouth.verification.proofs.decoding import EntryReaders
from rivermouth.verification.proofs.keyed import verify_latest
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    SCHEMA,
    ZERO,
    MemorySource,
    configured,
    entry,
    found,
    message,
    problems,
    quarantined,
    row,
    span,
    stored,
    subject,
    workspace,
)

pytestmark = pytest.mark.unit

COLUMNS = ["id", "n"]
LENIENT: dict[str, Any] = {"lenient": ["number_in_text", "any_case"]}
REPEATED: dict[str, Any] = {"lenient": ["repeated_names"]}
KEY = b'{"id":7}'
KEYED: Mapping[str, Any] = {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}


def ledger(*decoders: Mapping[str, Any]) -> list[LedgerEntry]:
    """Entries of ten offsets each, by these decoders."""
    return [
        replace(entry(at + 1, span(10 * at, 10 * at + 10)), decoder=told, columns=("id", "n"))
        for at, told in enumerate(decoders)
    ]


def of(readers: EntryReaders, entries: int, value: bytes) -> list[Any]:
    """What the reader of each entry makes of a value; the text ``bad`` where it refuses it."""
    made: list[Any] = []
    for each in range(entries):
        try:
            made.append(readers.of(each)(value))
        except Undecodable:
            made.append("bad")
    return made


@pytest.mark.parametrize(
    ("value", "strict", "repeated", "lenient"),
    [
        (b'{"id":1,"n":2}', (1, 2), (1, 2), (1, 2)),
        (b'{"id":1,"n":2.0}', (1, 2), (1, 2), (1, 2)),
        (b'{"id":1,"n":"2"}', "bad", "bad", (1, 2)),
        (b'{"id":1,"N":2}', (1, None), (1, None), (1, 2)),
        (b'{"id":1,"id":2}', "bad", (2, None), "bad"),
        (b"{'id':1}", "bad", "bad", "bad"),
        (b'{"id":1} and more', "bad", "bad", "bad"),
    ],
)
def test_each_entry_is_read_by_the_settings_that_it_names(
    value: bytes, strict: Any, repeated: Any, lenient: Any, tmp_path: Path
) -> None:
    entries = ledger({}, REPEATED, LENIENT, {}, {"version": 1})
    asked = subject(configured(tmp_path), MemorySource(), *entries)
    readers = EntryReaders(asked, SCHEMA, COLUMNS)
    assert of(readers, 5, value) == [strict, repeated, lenient, strict, strict]
    assert readers.of(0) is readers.of(3)


def test_a_column_that_an_entry_did_not_know_is_null_whatever_the_record_holds(
    tmp_path: Path,
) -> None:
    """Columns come in the order that was asked for."""
    entries = [replace(each, columns=("id",)) for each in ledger({}, REPEATED, LENIENT)]
    asked = subject(configured(tmp_path), MemorySource(), *entries, *ledger({}))
    readers = EntryReaders(asked, SCHEMA, ["n", "id"])
    assert of(readers, 4, b'{"id":1,"n":[]}') == [*[(None, 1)] * 3, "bad"]


def test_message_keys_are_read_by_the_decoder_of_their_entry(tmp_path: Path) -> None:
    entries = ledger({}, REPEATED, LENIENT)
    asked = subject(configured(tmp_path, key="json", **KEYED), MemorySource(), *entries)
    readers = EntryReaders(asked, SCHEMA, COLUMNS)
    made: list[Any] = []
    for key in (b'{"id":7.0}', b'{"ID":"7"}', b'{"id":6,"id":7}'):
        for each in range(3):
            read = readers.of_keys(each)
            assert read is not None
            try:
                made.append(read(key))
            except Undecodable:
                made.append("bad")
    assert made == [(7,), (7,), (7,), (None,), (None,), (7,), "bad", (7,), "bad"]


def test_a_form_of_keys_that_takes_no_settings_is_read_whatever_decoded_the_values(
    tmp_path: Path,
) -> None:
    asked = subject(configured(tmp_path, key="string", **KEYED), MemorySource(), *ledger(LENIENT))
    read = EntryReaders(asked, SCHEMA, COLUMNS).of_keys(0)
    assert read is not None
    assert read(b"7") == (7,)


def test_keys_in_the_form_of_another_format_have_their_own_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(tmp_path, key="json", **KEYED)
    json = FORMATS.by_name["json"]
    assert json.key is not None
    second = replace(json, key=replace(json.key, version=2))
    monkeypatch.setitem(FORMATS.by_name, "other", second)
    monkeypatch.setitem(FORMATS.by_name, "json", Format("json", "none:none", "none:none", {}))
    entries = ledger({"key": {"version": 2}}, {}, {"version": 2})
    readers = EntryReaders(subject(config, MemorySource(), *entries), SCHEMA, COLUMNS)
    read = readers.of_keys(0)
    assert read is not None
    assert read(KEY) == (7,)
    for each in (1, 2):
        with pytest.raises(Unreadable, match="decoded by version 1 of json"):
            readers.of_keys(each)


UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"version": 2}, "version 2 of json"),
    ({"version": "1"}, "version 1 of json"),
    ({"version": [1]}, r"version \[1\] of json"),
    ({"lenient": ["comments"]}, "the setting comments"),
    ({"timestamps": {"unit": "min"}}, "the setting unit min"),
    ({"floats": "round"}, "the setting floats"),
]


@pytest.mark.parametrize(("decoder", "named"), UNKNOWN)
def test_an_entry_of_an_unknown_decoder_is_not_judged_by_another(
    decoder: dict[str, Any], named: str, tmp_path: Path
) -> None:
    config = configured(tmp_path, key="json", **KEYED)
    asked = subject(config, MemorySource(), *ledger({}, decoder))
    readers = EntryReaders(asked, SCHEMA, COLUMNS)
    assert readers.of(0)(b'{"id":1}') == (1, None)
    for of in (readers.of, readers.of_keys):
        with pytest.raises(Unreadable, match=f"entry 2 was decoded by {named}.*upgrade rivermouth"):
            of(1)


RECORDS = [
    message(0, b'{"id":1,"N":2}'),
    message(1, b'{"id":2,"n":"2"}'),
    message(10, b'{"id":0,"id":3,"n":3.0}'),
    message(11, b'{"id":"4"}'),
    message(20, b'{"ID":"5"}'),
    message(21, b'{"id":6,"id":6}'),
]
"""Two for each entry: the second is bad by the decoder of the entry."""
ROWS = [row(1, None, 0), row(3, 3, 10), row(5, None, 20)]
DECODERS: tuple[Mapping[str, Any], ...] = ({}, REPEATED, LENIENT)


def verified(
    folder: Path, target: Mapping[str, Any], decoders: tuple[Mapping[str, Any], ...] = DECODERS
) -> Subject:
    """A table that three decoders wrote, each with a bad record of its own."""
    source = MemorySource({ZERO: RECORDS})
    asked = subject(configured(folder, **target), source, *ledger(*decoders))
    prove = verify_latest if target else verify_append
    kept = stored(ROWS, {ZERO: quarantined(*RECORDS[1::2])})
    prove(asked, kept, workspace(folder))
    return asked


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_rows_and_quarantine_of_several_decoders_are_proved_each_by_its_own(
    target: Mapping[str, Any], tmp_path: Path
) -> None:
    asked = verified(tmp_path, target)
    assert (found(asked), asked.findings.unchecked) == ({}, [])


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
@pytest.mark.parametrize(
    ("decoders", "offset"),
    [
        ((LENIENT, REPEATED, LENIENT), 0),
        ((LENIENT, REPEATED, LENIENT), 1),
        (({}, {}, LENIENT), 10),
        (({}, LENIENT, LENIENT), 11),
        (({}, REPEATED, {}), 20),
        (({}, REPEATED, {"lenient": [*LENIENT["lenient"], *REPEATED["lenient"]]}), 21),
    ],
)
def test_by_another_decoder_the_same_table_would_be_wrong(
    decoders: tuple[Mapping[str, Any], ...], offset: int, target: Mapping[str, Any], tmp_path: Path
) -> None:
    lines = problems(verified(tmp_path, target, decoders))
    assert any(f"t-0@{offset}: " in each for each in lines), lines
