"""An entry at greater length, and back: the same facts, easier to read, and to spoil.

In a log an entry holds lists of numbers by topic. At length it names each range
``[topic, partition, from, until]``, each position by topic and partition, and ``topics`` are the
ids. ``rows`` (applied, quarantined, skipped) run beside the ranges; without them nothing was
counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = dict[str, Any]
FORMAT = 1
_COUNTED = ("applied", "quarantined", "skipped")
_NESTED = ("position", "epochs", "ends")


def at_length(written: Mapping[str, Any]) -> Facts:
    """The entry at length. Raises ValueError for a format that is not known."""
    if written["rivermouth"] != FORMAT:
        raise ValueError(f"format {written['rivermouth']}")
    said: Facts = {**written, **{name: {} for name in ("topics", *_NESTED)}, "ranges": []}
    said["rows"] = []
    for topic, told in written["topics"].items():
        _add_topic(said, topic, told, counted=written.get("counted", True))
    if not said.pop("counted", True):
        said.pop("rows")
    return {name: each for name, each in said.items() if each or name not in ("epochs", "ends")}


def as_written(said: Mapping[str, Any]) -> Facts:
    """The entry as it is in a log, from its facts at length.

    Raises ValueError for a range that does not end at the position: no entry can say that.
    """
    left_out = {"ranges", "rows", "assigned", *_NESTED}
    told = {name: each for name, each in said.items() if name not in left_out}
    named = {*said["topics"], *(topic for each in _NESTED for topic in said.get(each) or {})}
    told["topics"] = {topic: _topic(said, topic) for topic in sorted(named)}
    rows = said.get("rows")
    if rows is None:
        told["counted"] = False
    counts = [None] * len(said["ranges"]) if rows is None else rows
    moved: dict[str, list[tuple[list[Any], Any]]] = {}
    for each, count in zip(said["ranges"], counts, strict=True):
        moved.setdefault(each[0], []).append((each, count))
    for topic, pairs in moved.items():
        told["topics"][topic]["ranges"] = _ranges(said["position"][topic], pairs)
    return told


def _topic(said: Mapping[str, Any], topic: str) -> Facts:
    stands, epochs, ends = ((said.get(each) or {}).get(topic, {}) for each in _NESTED)
    places = sorted({int(each) for each in (*stands, *epochs, *ends)})
    told: Facts = {"id": said["topics"][topic]} if topic in said["topics"] else {}
    if topic in said.get("assigned", ()):
        told["assigned"] = True
    if places:
        told["partitions"] = [each for place in places for each in (place, place)]
        told["position"] = [stands.get(str(each)) for each in places]
    if epochs:
        told["epochs"] = [epochs.get(str(each)) for each in places]
    if ends:
        beyond = ((ends.get(str(each)), stands.get(str(each)) or 0) for each in places)
        told["ends"] = [None if end is None else end - at for end, at in beyond]
    return told


def _ranges(stands: Mapping[str, Any], pairs: list[tuple[list[Any], Any]]) -> Facts:
    for (_, partition, _, until), _ in pairs:
        if stands.get(str(partition)) != until:
            raise ValueError(f"partition {partition}: {until} is not the position")
    told: Facts = {
        "partitions": [part for (_, part, *_), _ in pairs for _ in range(2)],
        "spans": [until - start for (_, _, start, until), _ in pairs],
    }
    if pairs[0][1] is not None:
        counts = [(*rows, 0)[: len(_COUNTED)] for _, rows in pairs]  # what was skipped may lack
        told |= {what: [each[at] for each in counts] for at, what in enumerate(_COUNTED)}
    return told


def _add_topic(said: Facts, topic: str, told: Mapping[str, Any], *, counted: bool) -> None:
    if "id" in told:
        said["topics"][topic] = told["id"]
    if told.get("assigned"):
        said.setdefault("assigned", []).append(topic)
    places = _numbers(told.get("partitions", []))
    stands = dict(zip(places, told.get("position", []), strict=True))
    beyond = dict(zip(places, _each(told.get("ends"), places), strict=True))
    _put(said["position"], topic, stands)
    _put(said["epochs"], topic, dict(zip(places, _each(told.get("epochs"), places), strict=True)))
    ends = {n: (stands[n] or 0) + by for n, by in beyond.items() if by is not None}
    _put(said["ends"], topic, ends)
    moved = told.get("ranges", {"partitions": [], "spans": []})
    parts = _numbers(moved["partitions"])
    for part, span in zip(parts, _each(moved["spans"], parts), strict=True):
        said["ranges"].append([topic, part, stands[part] - span, stands[part]])
    if counted:
        counts = (_each(moved.get(name, 0), parts) for name in _COUNTED)
        said["rows"] += [[*each] for each in zip(*counts, strict=True)]


def _numbers(runs: list[int]) -> list[int]:
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [number for first, last in pairs for number in range(first, last + 1)]


def _each(numbers: Any, places: list[int]) -> list[Any]:
    return numbers if isinstance(numbers, list) else [numbers] * len(places)


def _put(into: Facts, topic: str, numbers: Mapping[int, Any]) -> None:
    told = {str(place): each for place, each in numbers.items() if each is not None}
    if told:
        into[topic] = told
