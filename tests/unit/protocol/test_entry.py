"""Entries and their text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from tests.builders import PIPELINE, entry_after, replayed, span

pytestmark = pytest.mark.unit

TEXTS = st.text(max_size=20)
OFFSETS = st.integers(0, 2**62)
PLACES = st.builds(TopicPartition, TEXTS, st.integers(0, 2**31 - 1))


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry at all, with ranges that end at its position."""
    stands = draw(st.dictionaries(PLACES, OFFSETS, max_size=6))
    moved = draw(st.lists(st.sampled_from(sorted(stands)), unique=True)) if stands else []
    ranges = tuple(OffsetRange(p, draw(st.integers(0, stands[p])), stands[p]) for p in moved)
    counts = st.builds(RowCounts, OFFSETS, OFFSETS)
    rows = draw(st.none() | st.tuples(*(counts for _ in ranges)))
    settings_ = st.dictionaries(TEXTS, TEXTS | st.none() | st.lists(TEXTS), max_size=3)
    return Entry(
        pipeline=draw(TEXTS),
        sequence=draw(st.integers(1, 2**62)),
        commit=draw(TEXTS),
        cluster=draw(TEXTS),
        table=draw(TEXTS),
        topics=draw(st.dictionaries(TEXTS, TEXTS, max_size=3)),
        ranges=ranges,
        position=Position(stands),
        config=draw(settings_),
        rows=rows,
        ends=Position(draw(st.dictionaries(PLACES, OFFSETS, max_size=3))),
    )


@given(entries())
def test_an_entry_comes_back_from_its_text_as_it_was(entry: Entry) -> None:
    text = entry.to_json()
    assert "\n" not in text
    assert text.isascii()
    assert Entry.from_json(text) == entry


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(TEXTS | JSON.map(json.dumps))
@example("")
@example("null")
@example('"rivermouth"')
@example('["rivermouth"]')
@example('{"rivermout')
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("9" * 5000)
def test_a_text_of_others_is_never_an_entry_and_never_raises(text: str) -> None:
    assume('"rivermouth":' not in text.replace(" ", ""))
    assert Entry.from_json(text) is None


GOOD: Mapping[str, Any] = json.loads(entry_after(None, span(0, 5)).to_json())


@given(st.sampled_from(sorted(GOOD)), JSON)
def test_a_text_that_claims_to_be_an_entry_is_one_or_is_broken_and_nothing_else(
    name: str, value: object
) -> None:
    text = json.dumps({**GOOD, name: value})
    try:
        entry = Entry.from_json(text)
    except LedgerBroken:
        return
    assert isinstance(entry, Entry)
    record = CommitRecord(1, 0, "WRITE", {}, {app_id(PIPELINE): 1}, text)
    replayed([record])


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("a format of the future", {"rivermouth": 2}, "format"),
        ("no position", {"position": None}, "cannot be read"),
        ("a range of three", {"ranges": [["t", 0, 1]]}, "cannot be read"),
        ("a range that runs backwards", {"ranges": [["t", 0, 9, 5]]}, "half-open"),
        ("a range that ends elsewhere", {"ranges": [["t", 0, 0, 4]]}, "does not end"),
        ("a range of a partition without position", {"ranges": [["t", 1, 0, 5]]}, "does not end"),
        ("a negative position", {"position": {"t": {"0": -5}}, "ranges": []}, "not a position"),
        ("a position in words", {"position": {"t": {"0": "5"}}, "ranges": []}, "cannot be read"),
        ("an end in words", {"ends": {"t": {"0": "9"}}}, "cannot be read"),
        ("a sequence beyond all numbers", {"sequence": float("inf")}, "cannot be read"),
        ("a commit id that is not a text", {"commit": ["c"]}, "not a text"),
        ("a sequence of none", {"sequence": 0}, "sequence 0"),
        ("counts for more ranges than there are", {"rows": [[1, 0], [1, 0]]}, "2 counts"),
        ("a loss of what it does not cover", {"lost": [["t", 0, 0, 4]]}, "none of the ranges"),
        (
            "a rollback accepted together with records",
            {"accepts": {"kind": "reset", "version": 4, "standing": 0}},
            "covers no offsets",
        ),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_broken_ledger(
    name: str, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(LedgerBroken, match=said):
        Entry.from_json(json.dumps({**GOOD, **changes}))


def test_the_first_format_stays_readable_for_ever() -> None:
    written_once = (
        '{"rivermouth":1,"pipeline":"orders","sequence":7,"commit":"c7","cluster":"k",'
        '"table":"id","topics":{"t":"tid"},"ranges":[["t",0,3,9],["t",1,4,4]],'
        '"position":{"t":{"0":9,"1":4}},"config":{"keys":["id"]},"rows":[[5,1],[0,0]]}'
    )
    assert Entry.from_json(written_once) == Entry(
        pipeline="orders",
        sequence=7,
        commit="c7",
        cluster="k",
        table="id",
        topics={"t": "tid"},
        ranges=(span(3, 9), span(4, 4, 1)),
        position=Position({TopicPartition("t", 0): 9, TopicPartition("t", 1): 4}),
        config={"keys": ["id"]},
        rows=(RowCounts(5, 1), RowCounts(0, 0)),
    )
