"""Where the offsets of a partition mean other records than before: a name for each meaning.

A topic that was created again, a log that was cut, another form of message keys: the same offset is
another record from there on. So from such an entry on the place has another name (``later``), and
all that is said of a place is said of one meaning of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tests.faults.checker.entry import Entry, Span
from tests.faults.checker.evidence import Place, later

Names = Mapping[Place, Place]
"""By real place: the name of what its offsets mean now, where that is not the first meaning."""


def names_after(before: Names, entry: Entry, stood: Entry | None) -> Names:
    """The names that hold from an entry on."""
    names = dict(before)
    for place in _anew(entry, stood):
        names[place] = later(place, entry.sequence)
    return names


def _anew(entry: Entry, stood: Entry | None) -> Iterable[Place]:
    if entry.accepts == "reset" and stood is not None:
        return [place for place in stood.position if _is_other(place[0], entry, stood)]
    if entry.changes is None:
        return ()
    if "key" in entry.changes.settings:
        return {*(each.place for each in entry.changes.moved), *entry.position}
    return [each.place for each in entry.changes.moved]


def _is_other(topic: str, entry: Entry, stood: Entry) -> bool:
    return entry.topics.get(topic) != stood.topics.get(topic)


def placed(entry: Entry, names: Names) -> Entry:
    """The entry with the names that hold for it."""
    if not names:
        return entry

    def spans(listed: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple(each._replace(place=names.get(each.place, each.place)) for each in listed)

    def offsets(told: Mapping[Place, int]) -> dict[Place, int]:
        return {names.get(place, place): at for place, at in told.items()}

    return replace(
        entry,
        spans=spans(entry.spans),
        lost=spans(entry.lost),
        position=offsets(entry.position),
        ends=offsets(entry.ends),
    )
