"""The text of a ledger entry: one line of JSON, the ``userMetadata`` of its commit. Pure.

It holds numbers by topic, in the order of the partitions, so that an entry stays small with
thousands of them::

    "topics": {"orders": {
        "id": "…",                    the topic id
        "assigned": true,             only some partitions are read, on purpose; else left out
        "partitions": [0, 9, 12, 12], first and last of each run
        "position": [120, 80, …],     the next offset to read; null where there is none
        "epochs": 3,                  leader epochs, see Draft
        "ends": [0, 5, …],            offsets between the position and the end of the log
        "ranges": {"partitions": […], "spans": […], "applied": […], "quarantined": […]}}}

A range covers ``span`` offsets and ends at the position. A list of equal numbers may be that number
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.entry import Accepted, Changes, Entry, RowCounts, from_listed, listed
from rivermouth.protocol.offsets import (
    OffsetRange,
    Position,
    TopicPartition,
    from_runs,
    number,
    packed,
    runs,
    unpacked,
)

ENTRY_FORMAT = 1
"""The format that is written, and the only one that is read.

The next one has the next number: it alone is written, and this one is read beside it, here and in
``verify``, so that each log of a release stays readable. An older version halts at it (RM410).
"""


def to_json(entry: Entry) -> str:
    """One line of JSON in ASCII."""
    facts: dict[str, Any] = {
        "rivermouth": ENTRY_FORMAT,
        "pipeline": entry.pipeline,
        "sequence": entry.sequence,
        "commit": entry.commit,
        "cluster": entry.cluster,
        "table": entry.table,
        "topics": _topics(entry),
        "config": dict(entry.config),
        "columns": [[*each] for each in entry.columns],
        "base": entry.base,
    }
    if entry.rows is None:
        facts["counted"] = False
    optional = {
        "decoder": dict(entry.decoder),
        "metadata": [*entry.metadata],
        "lost": _listed(entry.lost),
        "accepts": None if entry.accepts is None else vars(entry.accepts),
        "deletes": [listed(each) for each in entry.deletes],
        "replayed": _listed(entry.replayed),
        "changes": None if entry.changes is None else entry.changes.as_dict(),
        "accepted": [[*each] for each in entry.accepted],
        "transform": entry.transform,
        "explode": entry.explode,
        "left_out": entry.left_out,
    }
    facts |= {name: value for name, value in optional.items() if value}
    return json.dumps(facts, separators=(",", ":"))


def from_json(text: str) -> Entry | None:
    """The entry in a ``userMetadata``, or None where it is somebody else's text.

    Raises LedgerBroken for a text that claims to be an entry and cannot be read.
    """
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or "rivermouth" not in facts:
        return None
    if facts["rivermouth"] != ENTRY_FORMAT:
        raise LedgerBroken(
            "an entry of a format this version does not know",
            expected=f"format {ENTRY_FORMAT}",
            found=f"format {facts['rivermouth']}",
            remedy="Upgrade rivermouth",
        )
    try:
        return Entry(**_of_topics(facts), **_others(facts))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise LedgerBroken("an entry that cannot be read", found=repr(fault)) from fault


def _topics(entry: Entry) -> dict[str, dict[str, Any]]:
    """What the entry says of each topic, see the module."""
    places: dict[str, list[TopicPartition]] = {topic: [] for topic in entry.topics}
    for each in sorted({*entry.position, *entry.epochs, *entry.ends}):
        places.setdefault(each.topic, []).append(each)
    moved: dict[str, list[int]] = {}
    for place, offset_range in enumerate(entry.ranges):
        moved.setdefault(offset_range.topic, []).append(place)
    facts = {topic: _topic(entry, topic, found) for topic, found in places.items()}
    for topic, numbers in moved.items():
        facts[topic]["ranges"] = _moved(entry, numbers)
    return facts


def _topic(entry: Entry, topic: str, places: list[TopicPartition]) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": entry.topics[topic]} if topic in entry.topics else {}
    if topic in entry.assigned:
        facts["assigned"] = True
    if not places:
        return facts
    position, ends = entry.position, entry.ends
    facts["partitions"] = runs([each.partition for each in places])
    facts["position"] = [position.get(each) for each in places]
    if any(each in entry.epochs for each in places):
        facts["epochs"] = packed([entry.epochs.get(each) for each in places])
    if any(ends.get(each) is not None for each in places):
        ended = [(ends.get(each), position.get(each) or 0) for each in places]
        facts["ends"] = packed([None if end is None else end - at for end, at in ended])
    return facts


def _moved(entry: Entry, numbers: list[int]) -> dict[str, Any]:
    """What the entry says of its ranges with these numbers, which are of one topic."""
    ranges = [entry.ranges[number] for number in numbers]
    facts: dict[str, Any] = {
        "partitions": runs([each.partition for each in ranges]),
        "spans": packed([each.span for each in ranges]),
    }
    if entry.rows is not None:
        rows = [entry.rows[number] for number in numbers]
        facts["applied"] = packed([each.applied for each in rows])
        if any(each.quarantined for each in rows):
            facts["quarantined"] = packed([each.quarantined for each in rows])
        if any(each.skipped for each in rows):
            facts["skipped"] = packed([each.skipped for each in rows])
    return facts


def _others(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry tells beside its topics."""
    accepts = facts.get("accepts")
    return {
        "pipeline": _text(facts["pipeline"]),
        "sequence": int(facts["sequence"]),
        "commit": _text(facts["commit"]),
        "cluster": _text(facts["cluster"]),
        "table": _text(facts["table"]),
        "config": dict(facts["config"]),
        "columns": tuple((_text(name), _text(kind)) for name, kind in facts["columns"]),
        "decoder": dict(facts.get("decoder", {})),
        "metadata": tuple(_text(each) for each in facts.get("metadata", ())),
        "lost": _ranges(facts.get("lost", ())),
        "accepts": None if accepts is None else Accepted(**accepts),
        "deletes": tuple(from_listed(each) for each in facts.get("deletes", ())),
        "replayed": _ranges(facts.get("replayed", ())),
        "transform": _text(facts.get("transform", "")),
        "explode": facts.get("explode") is True,
        "left_out": number(facts.get("left_out", 0)),
        "base": None if facts["base"] is None else int(facts["base"]),
        "changes": Changes.from_dict(facts["changes"]) if "changes" in facts else None,
        "accepted": tuple((_text(kind), int(at)) for kind, at in facts.get("accepted", ())),
    }


def _of_topics(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry tells of its topics, see the module."""
    position, epochs, ends = (dict[TopicPartition, int]() for _ in range(3))
    ranges: list[OffsetRange] = []
    rows: list[RowCounts] = []
    counted = bool(facts.get("counted", True))
    for topic, its in facts["topics"].items():
        positions = its.get("position", [])
        places = _places(topic, its.get("partitions", []), len(positions))
        position |= _numbers(places, positions)
        epochs |= _numbers(places, its.get("epochs"))
        beyond = _numbers(places, its.get("ends"))
        ends |= {each: position.get(each, 0) + number for each, number in beyond.items()}
        if "ranges" in its:
            moved = its["ranges"]
            parts = _places(topic, moved["partitions"], len(places))
            spans = _each(parts, moved["spans"])
            ranges += [OffsetRange(p, position[p] - n, position[p]) for p, n in spans.items()]
            applied = _each(parts, moved["applied"]) if counted else {}
            bad = _each(parts, moved.get("quarantined", 0)) if counted else {}
            without = _each(parts, moved.get("skipped", 0)) if counted else {}
            rows += [RowCounts(n, bad[each], without[each]) for each, n in applied.items()]
    order = sorted(range(len(ranges)), key=ranges.__getitem__)
    return {
        "topics": {name: _text(its["id"]) for name, its in facts["topics"].items() if "id" in its},
        "assigned": frozenset(
            name for name, its in facts["topics"].items() if its.get("assigned") is True
        ),
        "ranges": tuple(ranges[each] for each in order),
        "position": Position(position),
        "epochs": epochs,
        "ends": Position(ends),
        "rows": tuple(rows[each] for each in order) if counted else None,
    }


def _places(topic: str, runs: Any, most: int) -> list[TopicPartition]:
    return [TopicPartition(topic, each) for each in from_runs(runs, most)]


def _numbers(places: list[TopicPartition], packed: Any) -> dict[TopicPartition, int]:
    """The numbers of these partitions, without those of which none is told."""
    numbers = zip(places, unpacked(packed, len(places)), strict=True)
    return {each: number for each, number in numbers if number is not None}


def _each(places: list[TopicPartition], packed: Any) -> dict[TopicPartition, int]:
    """A number for each of these partitions. Raises ValueError."""
    found = _numbers(places, packed)
    if len(found) != len(places):
        raise ValueError(f"{len(found)} numbers for {len(places)} partitions")
    return found


def _ranges(listed: Iterable[Any]) -> tuple[OffsetRange, ...]:
    return tuple(
        OffsetRange(TopicPartition(topic, partition), start, until)
        for topic, partition, start, until in listed
    )


def _listed(ranges: Iterable[OffsetRange]) -> list[list[Any]]:
    return [[each.topic, each.partition, each.from_offset, each.until_offset] for each in ranges]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value
