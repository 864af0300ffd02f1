"""The end of a table's log, as far back as a start needs it.

An entry names its ``base``: the version of the table that its driver had read. All up to there
passed that driver's guards. So a start reads from the newest entry's base on, and further back
only for what it has to do itself: entries that the offsets table lacks, and a RESTORE after that
base, which leads back to the entry that it left in effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.commits import CommitRecord, entry_of
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.rollback import rolls_back


def end_of_log(
    newest_first: Iterable[CommitRecord], pipeline: str, projected: int
) -> list[CommitRecord]:
    """The commits of a table that a start has to replay, in order.

    Of ``newest_first`` no more is taken than is needed.

    ``projected`` is the newest sequence in the offsets table. All are taken where there is no
    entry, and where entries of an early version do not tell their base.
    """
    found: list[CommitRecord] = []
    back_to: int | None = None
    """The entry to begin with is at this version or before; None: anywhere."""
    ends_at: int | None = None
    for record in newest_first:
        if ends_at is not None and record.version <= ends_at:
            break
        found.append(record)
        if rolls_back(record):
            back_to, ends_at = _leads_back(back_to, record), None
        entry = _entry(record, pipeline)
        if entry is None or ends_at is not None:
            continue
        is_old_enough = back_to is None or record.version <= back_to
        if is_old_enough and entry.sequence <= projected + 1:
            ends_at = entry.base
    return found[::-1]


def _entry(record: CommitRecord, pipeline: str) -> Entry | None:
    try:
        return entry_of(record, pipeline)
    except LedgerBroken:  # the replay tells of it
        return None


def _leads_back(back_to: int | None, record: CommitRecord) -> int | None:
    """The version back to which a rollback leads, where a later one leads to ``back_to``.

    A RESTORE leads to its version. Any other leaves nothing in effect; where a later RESTORE may
    have gone back to that, reading starts where the partitions once did, which the first entry
    tells.
    """
    if record.operation != "RESTORE":
        return None if back_to is None else _TO_THE_FIRST
    to = str(record.parameters.get("version"))
    found = [each for each in (back_to, int(to) if to.isdigit() else None) if each is not None]
    return min(found, default=None)


_TO_THE_FIRST = -1
