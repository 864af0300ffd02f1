"""Entries and their text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.commits import CommitRecord, app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import from_json, to_json
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
    moved = sorted(draw(st.sets(st.sampled_from(sorted(stands))))) if stands else []
    ranges = tuple(OffsetRange(p, draw(st.integers(0, stands[p])), stands[p]) for p in moved)
    counts = st.builds(RowCounts, OFFSETS, OFFSETS)
    rows = draw(st.none() | st.tuples(*(counts for _ in ranges)))
    settings_ = st.dictionaries(TEXTS, TEXTS | st.none() | st.lists(TEXTS), max_size=3)
    topics = draw(st.dictionaries(TEXTS, TEXTS, max_size=3))
    return Entry(
        pipeline=draw(TEXTS),
        sequence=draw(st.integers(1, 2**62)),
        commit=draw(TEXTS),
        cluster=draw(TEXTS),
        table=draw(TEXTS),
        topics=topics,
        assigned=frozenset(each for each in topics if draw(st.booleans())),
        ranges=ranges,
        position=Position(stands),
        config=draw(settings_),
        rows=rows,
        explode=rows is not None and draw(st.booleans()),
        ends=Position(draw(st.dictionaries(PLACES, OFFSETS, max_size=3))),
        epochs=draw(st.dictionaries(PLACES, st.integers(0, 9), max_size=3)),
        columns=tuple(draw(st.lists(st.tuples(TEXTS, TEXTS), max_size=2))),
        decoder=draw(st.dictionaries(TEXTS, st.integers(2, 9) | st.lists(TEXTS), max_size=2)),
        metadata=tuple(draw(st.lists(TEXTS, max_size=2))),
        base=draw(st.none() | OFFSETS),
    )


@given(entries())
def test_an_entry_comes_back_from_its_text_as_it_was(entry: Entry) -> None:
    text = to_json(entry)
    assert "\n" not in text
    assert text.isascii()
    assert from_json(text) == entry


def test_ranges_of_several_topics_come_back_in_order_whichever_topic_was_known_first() -> None:
    moved = [OffsetRange(TopicPartition(each, 0), 0, 2) for each in ("accounts", "orders")]
    counts = (RowCounts(1, 1), RowCounts(2, 0))
    entry = replace(entry_after(None, *moved), rows=counts, topics={"orders": "2", "accounts": "1"})
    assert from_json(to_json(entry)) == entry


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
    assert from_json(text) is None


GOOD: Mapping[str, Any] = json.loads(to_json(entry_after(None, span(0, 5))))
TOLD: Mapping[str, Any] = GOOD["topics"]["t"]


@given(st.sampled_from([*GOOD]), JSON)
def test_a_text_that_claims_to_be_an_entry_is_one_or_is_broken_and_nothing_else(
    name: str, value: object
) -> None:
    text = json.dumps({**GOOD, name: value})
    try:
        entry = from_json(text)
    except LedgerBroken:
        return
    assert isinstance(entry, Entry)
    record = CommitRecord(1, 0, "WRITE", {}, {app_id(PIPELINE): 1}, text)
    replayed([record])


@given(st.sampled_from([*TOLD, "ends", "epochs"]), JSON)
def test_whatever_an_entry_says_of_a_topic_it_is_read_or_broken(name: str, value: object) -> None:
    text = json.dumps({**GOOD, "topics": {"t": {**TOLD, name: value}}})
    try:
        assert isinstance(from_json(text), Entry)
    except LedgerBroken:
        return


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("a partition too many", {"partitions": [0, 1]}, "do not fit"),
        ("more partitions than fit into memory", {"partitions": [0, 10**12]}, "do not fit"),
        ("a partition twice", {"partitions": [0, 0, 0, 0], "position": [5, 5]}, "do not fit"),
        ("half a run", {"partitions": [0]}, "cannot be read"),
        ("a run that runs backwards", {"partitions": [1, 0]}, "not a run"),
        ("a negative partition", {"partitions": [-1, -1]}, "not a run"),
        ("a position in words", {"position": ["5"]}, "not a whole number"),
        ("a negative position", {"position": [-5], "ranges": None}, "cannot be read"),
        ("a negative span", {"ranges": {**TOLD["ranges"], "spans": -1}}, "half-open"),
        ("a span beyond the start", {"ranges": {**TOLD["ranges"], "spans": 6}}, "half-open"),
        ("a range of no partition", {"ranges": {**TOLD["ranges"], "partitions": [1, 1]}}, "read"),
        ("no counts", {"ranges": {"partitions": [0, 0], "spans": 5}}, "cannot be read"),
        ("counts for more", {"ranges": {**TOLD["ranges"], "applied": [5, 5]}}, "2 numbers"),
        ("ends for more", {"ends": [0, 0]}, "2 numbers"),
        ("true for 1", {"position": [True], "ranges": None}, "not a whole number"),
    ],
)
def test_what_an_entry_says_of_a_topic_must_fit_together(
    name: str, told: dict[str, object], said: str
) -> None:
    with pytest.raises(LedgerBroken, match=said):
        from_json(json.dumps({**GOOD, "topics": {"t": {**TOLD, **told}}}))


def test_an_entry_of_thousands_of_partitions_is_small() -> None:
    places = [TopicPartition("orders_of_a_long_name", n) for n in range(2000)]
    stands = {each: 4_000_000_000 + 7919 * each.partition for each in places}
    entry = Entry(
        pipeline="orders",
        sequence=1_000_000,
        commit="fd956021-cb8b-4ad5-934f-b83feb9c8f0f",
        cluster="mX086GabTd-uj9H8maeh0Q",
        table="45891440-2fb6-41ed-9166-9cf658a13e17",
        topics={"orders_of_a_long_name": "n91wQjUUSUaFP4umS0Kszg"},
        ranges=tuple(OffsetRange(p, at - 250 - p.partition % 99, at) for p, at in stands.items()),
        position=Position(stands),
        rows=tuple(RowCounts(240 + each.partition % 99, each.partition % 2) for each in places),
        epochs={each: each.partition % 40 for each in places},
        ends=Position({each: at + 1000 + each.partition for each, at in stands.items()}),
        columns=tuple((f"column_{n}", "DECIMAL(12,2)") for n in range(30)),
    )
    text = to_json(entry)
    assert from_json(text) == entry
    assert len(text) < 60_000, len(text)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("a format of the future", {"rivermouth": 2}, "format"),
        ("no topics", {"topics": None}, "cannot be read"),
        ("no columns", {"columns": None}, "cannot be read"),
        ("a column without a type", {"columns": [["id"]]}, "cannot be read"),
        ("no settings", {"config": None}, "cannot be read"),
        ("a sequence beyond all numbers", {"sequence": float("inf")}, "cannot be read"),
        ("a commit id that is not a text", {"commit": ["c"]}, "not a text"),
        ("a sequence of none", {"sequence": 0}, "sequence 0"),
        ("several rows of a record, no counts", {"explode": True, "counted": False}, "no counts"),
        ("a loss of what it does not cover", {"lost": [["t", 0, 0, 4]]}, "none of the ranges"),
        (
            "a rollback accepted together with records",
            {"accepts": {"kind": "reset", "version": 4, "standing": 0}},
            "covers no offsets",
        ),
        ("a replay together with records", {"replayed": [["t", 0, 0, 5]]}, "covers no offsets"),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_broken_ledger(
    name: str, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(LedgerBroken, match=said):
        from_json(json.dumps({**GOOD, **changes}))


@pytest.mark.parametrize("name", [each for each in GOOD if each != "rivermouth"])
def test_what_every_entry_tells_must_be_there(name: str) -> None:
    text = json.dumps({each: told for each, told in GOOD.items() if each != name})
    with pytest.raises(LedgerBroken, match="cannot be read"):
        from_json(text)


def test_the_text_of_an_entry_is_what_the_format_says() -> None:
    """As long as the format has this number."""
    written = (
        '{"rivermouth":1,"pipeline":"orders","sequence":7,"commit":"c7","cluster":"k",'
        '"table":"id","topics":{"t":{"id":"tid","partitions":[0,1],"position":[9,4],'
        '"ranges":{"partitions":[0,1],"spans":[6,0],"applied":[5,0],"quarantined":[1,0]}}},'
        '"config":{"keys":["id"]},"columns":[["id","BIGINT"]],"base":11}'
    )
    entry = Entry(
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
        columns=(("id", "BIGINT"),),
        base=11,
    )
    assert to_json(entry) == written
    assert from_json(written) == entry


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ({"explode": True}, True),
        ({"replayed": (span(2, 5),)}, [["t", 0, 2, 5]]),
        ({"lost": (span(5, 5),)}, [["t", 0, 5, 5]]),
        ({"transform": "shop.rows:clean"}, "shop.rows:clean"),
        ({"left_out": 3}, 3),
    ],
)
def test_what_applies_to_few_entries_is_told_only_there(fact: dict[str, Any], text: object) -> None:
    plain = entry_after(entry_after(None, span(0, 5)), span(5, 5))
    [name] = fact
    entry = replace(plain, **fact)
    assert json.loads(to_json(entry))[name] == text
    assert from_json(to_json(entry)) == entry
    assert name not in to_json(plain)
