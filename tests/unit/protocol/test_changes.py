"""What an entry that accepts changes says: by which moves the position may get elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.drafts import changing_draft
from rivermouth.protocol.entry import Change, Changes, Entry, Move, accepted_changes
from rivermouth.protocol.entry_json import from_json, to_json
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Position, TopicPartition
from tests.builders import (
    TableLog,
    entry_after,
    place,
    position,
    record_of_entry,
    replayed,
    span,
)
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit

GONE = Changes((Change.PARTITIONS,), moved=(Move(place(1), 4, None),))
CUT = Changes((Change.TRUNCATION,), moved=(Move(place(), 3, 1),))
OTHER = Changes((Change.TOPIC,), topics={"t": "old"}, moved=(Move(place(), 3, 7),))
KEY = Changes((Change.IDENTITY,), settings={"key": None})
MOVED = Changes(
    (Change.PARTITIONS, Change.CLUSTER),
    cluster="old",
    topics={"t": "old"},
    moved=(Move(place(), 3, 0), Move(place(1), 4, None), Move(place(2), None, 5)),
)


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        (GONE, position(3)),
        (CUT, position(1, 4)),
        (OTHER, position(7, 4)),
        (KEY, position(3, 4)),
        (MOVED, Position({place(): 0, place(2): 5})),
    ],
    ids=["partitions", "truncation", "topic", "identity", "cluster and partitions"],
)
def test_a_position_moves_as_the_changes_say(changes: Changes, after: Position) -> None:
    assert changes.applied(position(3, 4)) == after
    assert Changes.from_dict(changes.as_dict()) == changes


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (replace(GONE, moved=(Move(place(1), 5, None),)), "stood at 4, not at 5"),
        (replace(GONE, moved=(Move(place(7), None, None),)), "may not move"),
        (replace(CUT, moved=(Move(place(), 3, 4),)), "may not move from 3 to 4"),
        (replace(CUT, moved=(Move(place(), 3, None),)), "may not move"),
        (replace(CUT, moved=(Move(place(5), None, 1),)), "may not move"),
        (replace(OTHER, topics={"u": "old"}), "may not move"),
        (replace(KEY, moved=(Move(place(), 3, 1),)), "may not move"),
    ],
)
def test_a_move_that_its_kind_does_not_allow_is_refused(changes: Changes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        changes.applied(position(3, 4))


@pytest.mark.parametrize(
    "facts",
    [
        {"kinds": ()},
        {"kinds": (Change.IDENTITY,)},
        {"kinds": (Change.CLUSTER,)},
        {"kinds": (Change.TRUNCATION,), "topics": {"t": "old"}},
        {"kinds": (Change.TRUNCATION,), "settings": {"key": None}},
        {"kinds": (Change.TOPIC,), "cluster": "old"},
    ],
)
def test_changes_fit_their_kinds(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        Changes(**facts)


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("topic", {Change.TOPIC}),
        ("topic, identity", {Change.TOPIC, Change.IDENTITY}),
        ("restore", set()),
        ("topic,restore", set()),
        ("", set()),
    ],
)
def test_kinds_are_named_with_commas(words: str, kinds: set[Change]) -> None:
    assert accepted_changes(words) == kinds


def accepting(changes: Changes, at: Position) -> tuple[TableLog, Entry]:
    """A log at (3, 4), and the entry that would accept ``changes`` and go on at ``at``."""
    log = TableLog().wrote(span(0, 3), span(0, 4, 1))
    plain = entry_after(log.newest)
    facts: dict[str, Any] = {"changes": changes, "position": at, "ranges": (), "rows": ()}
    return log, replace(plain, **facts, accepted=(("topic", 2),))


def test_an_entry_tells_its_changes_and_all_that_were_accepted() -> None:
    _, entry = accepting(MOVED, MOVED.applied(position(3, 4)))
    assert from_json(to_json(entry)) == entry


@pytest.mark.parametrize(
    ("changes", "at", "fault"),
    [
        (GONE, position(3), None),
        (CUT, position(1, 4), None),
        (CUT, position(0, 4), "position is not where the ranges lead"),
        (KEY, position(0, 4), "position is not where the ranges lead"),
        (replace(GONE, moved=(Move(place(1), 5, None),)), position(3), "do not follow on"),
    ],
)
def test_a_replay_allows_just_the_moves_that_an_entry_accepts(
    changes: Changes, at: Position, fault: str | None
) -> None:
    log, entry = accepting(changes, at)
    history = replayed([*log.records, record_of_entry(log.next_version, entry)])
    assert history.position == at
    if fault is None:
        assert history.faults == ()
    else:
        [found] = history.faults
        assert isinstance(found, LedgerBroken)
        assert fault in found.what


def test_an_entry_that_accepts_changes_covers_no_offsets() -> None:
    log = TableLog().wrote(span(0, 3))
    with pytest.raises(ValueError, match="covers no offsets"):
        replace(entry_after(log.newest, span(3, 5)), changes=KEY)


@pytest.mark.parametrize(("changes", "kept"), [(KEY, {place(): 5}), (OTHER, {}), (MOVED, {})])
def test_leader_epochs_of_another_topic_are_forgotten_where_no_new_ones_are_told(
    changes: Changes, kept: dict[TopicPartition, int]
) -> None:
    log = TableLog().wrote(span(0, 3), span(0, 4, 1))
    assert log.newest is not None
    entry = replace(log.newest, epochs={place(): 5})
    history = replayed([log.records[0], record_of_entry(1, entry)])
    kafka = KafkaFacts("c", {"t": "new"}, {})
    assert changing_draft(history, "table-1", a_pipeline(), kafka, changes).epochs == kept
