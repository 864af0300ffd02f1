"""What a verification proved, as a value: up to which entry, when, and what was left out.

A record is true by itself: it says what was right at a time. Whether the next verification may
build on it depends on the log, see ``ledger.log``, and on what was found since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

FORMAT = 1
Offsets = Mapping[str, Mapping[str, int]]
"""The next offset of each partition, by topic and by the partition's number."""


@dataclass(frozen=True)
class Place:
    """One entry, and the version of the table whose commit holds it."""

    sequence: int
    commit: str
    version: int


@dataclass(frozen=True)
class Before:
    """What was not read again: the entries up to ``entry``.

    ``proved_ms``: when they were proved, in ms since 1970; None: nobody knows. ``keys`` of those
    that were compared have a row from there that ranks higher than all that came later.
    """

    entry: int
    proved_ms: int | None = None
    keys: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "entry": self.entry,
            "proved_at": None if self.proved_ms is None else moment(self.proved_ms),
            "keys_with_earlier_rows": self.keys,
        }


@dataclass(frozen=True)
class Reach:
    """The entries that were verified: from ``first`` on up to the one at ``last``.

    ``former``: for each partition that had records which Kafka no longer has, since a change of the
    source was accepted, the offset after the last of them; None: nobody knows.
    """

    first: int
    last: Place
    position: Offsets
    before: Before | None = None
    former: Offsets | None = None


@dataclass(frozen=True)
class Proved:
    """The record of one pipeline: all entries from ``first`` up to the one at ``last`` are right.

    ``at_ms``: when the newest of them were verified. ``full_entry`` and ``full_ms``: up to which
    entry all was last read at once, and when. Times are in ms since 1970. ``left``: how much was
    not checked, by its kind; at most, where several verifications are summed up. ``failed_ms``:
    when a later verification found something; then nothing may be built on the record. ``former``
    is that of the ``Reach``.
    """

    pipeline: str
    table: str
    first: int
    last: Place
    position: Offsets
    at_ms: int
    full_entry: int
    full_ms: int
    strict: bool = False
    left: Mapping[str, int] = field(default_factory=dict)
    failed_ms: int | None = None
    former: Offsets | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of the record."""
        return {
            "rivermouth_proof": FORMAT,
            "pipeline": self.pipeline,
            "table": self.table,
            "first_entry": self.first,
            "entry": self.last.sequence,
            "commit": self.last.commit,
            "table_version": self.last.version,
            "position": self.position,
            "at": moment(self.at_ms),
            "full": {"entry": self.full_entry, "at": moment(self.full_ms)},
            "strict": self.strict,
            "not_checked": dict(self.left),
            "failed_at": None if self.failed_ms is None else moment(self.failed_ms),
            "former": self.former,
        }

    @staticmethod
    def parse(facts: Mapping[str, Any]) -> Proved:
        """From its JSON; raises KeyError, TypeError, ValueError or AttributeError."""
        if facts["rivermouth_proof"] != FORMAT:
            raise ValueError(f"format {facts['rivermouth_proof']}")
        return Proved(
            pipeline=str(facts["pipeline"]),
            table=str(facts["table"]),
            first=int(facts["first_entry"]),
            last=Place(int(facts["entry"]), str(facts["commit"]), int(facts["table_version"])),
            position=dict(facts["position"]),
            at_ms=_ms(facts["at"]),
            full_entry=int(facts["full"]["entry"]),
            full_ms=_ms(facts["full"]["at"]),
            strict=bool(facts["strict"]),
            left={str(name): int(number) for name, number in facts["not_checked"].items()},
            failed_ms=None if facts["failed_at"] is None else _ms(facts["failed_at"]),
            former=_offsets(facts["former"]),
        )


@dataclass(frozen=True)
class Recording:
    """What is on record of a pipeline; ``problem``: why it cannot be read, or was not written."""

    proved: Proved | None = None
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Its JSON."""
        known = None if self.proved is None else self.proved.as_dict()
        return {"recorded": known, "not_recorded": self.problem}


@dataclass(frozen=True)
class RecordState:
    """A record, and why nothing can be built on it any more (None: something can).

    ``unread``: so many commits came since that the log was not read for it.
    """

    proved: Proved
    void: str | None = None
    unread: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Its JSON; ``stands`` is null where that was not looked at."""
        stands = None if self.unread else self.void is None
        return {**self.proved.as_dict(), "stands": stands, "void": self.void}


def whole(known: Proved | None, found: Proved, began_ms: int) -> Proved | str:
    """What to record once all entries were verified: ``found``; ``known`` is on record.

    A verification that began later may have recorded more meanwhile; then that stays, with the
    time of this one. Where one found a fault meanwhile, nothing is recorded: this one may have
    read what is wrong before it was.
    """
    if known is not None and known.failed_ms is not None and known.failed_ms >= began_ms:
        return "another verification found a fault meanwhile"
    if known is None or known.failed_ms is not None or known.at_ms < began_ms:
        return found
    if known.last.sequence <= found.last.sequence:
        return found
    return replace(known, full_entry=found.last.sequence, full_ms=found.full_ms)


def extended(known: Proved, found: Proved) -> Proved:
    """What to record once the entries after those on record were verified, too."""
    return replace(
        found,
        first=known.first,
        full_entry=known.full_entry,
        full_ms=known.full_ms,
        strict=known.strict and found.strict,
        left=dict(Counter(known.left) + Counter(found.left)),
        former=known.former,
    )


def moment(ms: float) -> str:
    """A time in ms since 1970 as ISO 8601, in UTC."""
    at = datetime.fromtimestamp(ms / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _offsets(facts: Any) -> Offsets | None:
    if facts is None:
        return None
    return {
        str(topic): {str(number): int(offset) for number, offset in offsets.items()}
        for topic, offsets in facts.items()
    }


def _ms(text: str) -> int:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if at.tzinfo is None:
        raise ValueError(f"no time zone: {text}")
    return round(at.timestamp() * 1000)
