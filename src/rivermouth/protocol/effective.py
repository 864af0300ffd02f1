"""Which entry of a pipeline was in effect at each version of a table. Pure.

RESTORE, REPLACE and TRUNCATE roll commits back and leave their ``txn`` behind. So what is in
effect is a tree: each entry rests on the one that was in effect before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any


@dataclass(frozen=True)
class Effective:
    """The entry in effect, by its sequence, and the one that it rests on. Sequence 0: none.

    ``before`` is None where nothing is before it, or where the log does not tell.
    """

    sequence: int
    before: Effective | None = field(default=None, compare=False, repr=False)

    def chain(self) -> Iterator[Effective]:
        """This entry and those that it rests on, the newest first."""
        each: Effective | None = self
        while each is not None and each.sequence > 0:
            yield each
            each = each.before


NOTHING = Effective(0)


@dataclass(frozen=True)
class Marks:
    """From ``version`` on, until the next mark, ``effective`` was in effect; None: unknown.

    ``before`` are the earlier marks. Versions never go down.
    """

    version: int
    effective: Effective | None
    before: Marks | None = field(default=None, compare=False, repr=False)

    def backwards(self) -> Iterator[Marks]:
        """All marks, the newest first."""
        each: Marks | None = self
        while each is not None:
            yield each
            each = each.before


MARKS_KEPT = 100
"""How many marks a run keeps: a RESTORE to what is older halts it anyway."""


def newest_marks(marks: Marks) -> Marks:
    """The newest marks, each with its entry alone: a run must not grow with what it commits."""
    kept: Marks | None = None
    for each in [*islice(marks.backwards(), MARKS_KEPT)][::-1]:
        alone = Effective(each.effective.sequence) if each.effective is not None else None
        kept = Marks(each.version, alone, kept)
    return kept or marks


def effective_at(marks: Marks | None, version: Any) -> Effective | None:
    """What a RESTORE to ``version`` leaves in effect; None where the log does not tell.

    A RESTORE to a point in time does not record the version. It cannot be found again: Delta goes
    by the times of files, in the time zone of a session. Nor can an entry that log clean-up took.
    """
    if not str(version).isdigit() or marks is None:
        return None
    reached = (each for each in marks.backwards() if each.version <= int(version))
    found = next(reached, None)
    return found.effective if found is not None else None


def known_before(marks: Marks | None, version: int) -> int | None:
    """The newest version before ``version`` of which the log tells what was in effect."""
    if marks is None:
        return None
    if effective_at(marks, version - 1) is not None:
        return version - 1
    known = (each.version for each in marks.backwards() if each.effective is not None)
    return max((each for each in known if each < version), default=None)
