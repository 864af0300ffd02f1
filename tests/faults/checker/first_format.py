"""An entry of either format in the form of the first one: the same facts, at greater length.

Format 1 names each range ``[topic, partition, from, until]`` and each position by topic and
partition. That is easier to read, and to spoil, than the lists of numbers of format 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = dict[str, Any]


def first_format(facts: Mapping[str, Any]) -> Facts:
    """The entry as format 1 has it. Raises ValueError for any other format."""
    if facts["rivermouth"] == 1:
        return dict(facts)
    if facts["rivermouth"] != 2:
        raise ValueError(f"format {facts['rivermouth']}")
    by_topic = ("topics", "ranges", "position", "rows", "epochs", "ends")
    said: Facts = {**facts, "rivermouth": 1, **{name: {} for name in by_topic}}
    said["ranges"], said["rows"] = [], []
    for topic, told in facts["topics"].items():
        _add_topic(said, topic, told, counted=facts.get("counted", True))
    if not said.pop("counted", True):
        said.pop("rows")
    return {name: each for name, each in said.items() if each or name not in ("epochs", "ends")}


def _add_topic(said: Facts, topic: str, told: Mapping[str, Any], *, counted: bool) -> None:
    if "id" in told:
        said["topics"][topic] = told["id"]
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
        applied, bad = (_each(moved.get(name, 0), parts) for name in ("applied", "quarantined"))
        said["rows"] += [[*each] for each in zip(applied, bad, strict=True)]


def _numbers(runs: list[int]) -> list[int]:
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [number for first, last in pairs for number in range(first, last + 1)]


def _each(numbers: Any, places: list[int]) -> list[Any]:
    return numbers if isinstance(numbers, list) else [numbers] * len(places)


def _put(into: Facts, topic: str, numbers: Mapping[int, Any]) -> None:
    told = {str(place): each for place, each in numbers.items() if each is not None}
    if told:
        into[topic] = told
