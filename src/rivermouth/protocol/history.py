"""The history of one pipeline's ledger, as far as a table's log has been replayed. Pure.

RESTORE, REPLACE and TRUNCATE roll commits back and leave their ``txn`` behind. So what is in
effect is a tree: each entry rests on the one that was in effect before it.

A ``History`` is a value. ``replay.replay`` makes the next one from it and the commits that follow;
at a start that is the audit of invariants 1, 2 and 5, and again after each commit of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from rivermouth.errors import Halt, LedgerBroken, TableUndone
from rivermouth.protocol.commits import CommitRecord, Recorded
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position, TopicPartition


@dataclass(frozen=True)
class Period:
    """From ``version`` on, until the next period, this entry was in effect.

    ``sequence`` is the entry's; 0: none was, None: nobody can tell. ``before`` are the earlier
    periods. Versions never go down.
    """

    version: int
    sequence: int | None
    before: Period | None = field(default=None, compare=False, repr=False)

    def backwards(self) -> Iterator[Period]:
        """All periods, the newest first."""
        each: Period | None = self
        while each is not None:
            yield each
            each = each.before


PERIODS_KEPT = 100
"""How many periods a run keeps: a RESTORE to what is older halts it anyway."""


def effective_at(periods: Period | None, version: Any) -> int | None:
    """What a RESTORE to ``version`` leaves in effect; None where the log does not tell.

    A RESTORE to a point in time does not record the version. It cannot be found again: Delta goes
    by the times of files, in the time zone of a session. Nor can an entry that log clean-up took.
    """
    if not str(version).isdigit() or periods is None:
        return None
    reached = (each.sequence for each in periods.backwards() if each.version <= int(version))
    return next(reached, None)


def known_before(periods: Period | None, version: int) -> int | None:
    """The newest version before ``version`` of which the log tells what was in effect."""
    if periods is None:
        return None
    if effective_at(periods, version - 1) is not None:
        return version - 1
    known = (each.version for each in periods.backwards() if each.sequence is not None)
    return max((each for each in known if each < version), default=None)


def rolls_back(record: CommitRecord) -> bool:
    """Whether an operation takes rows back as a whole without touching our ``txn``.

    Spark and deltalake spell it differently. What names some rows is left to ``verify``.
    """
    operation, parameters = record.operation.upper(), record.parameters
    if operation == "RESTORE":
        return True
    everything = str(parameters.get("predicate") or "").lower() in _EVERYTHING
    if operation == "DELETE":
        return everything
    if operation == "WRITE" and parameters.get("mode") == "Overwrite":
        dynamic = str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true"
        by_row = any(name.startswith("replace") for name in parameters)  # replaceUsing, replaceOn
        return everything and not dynamic and not by_row
    return operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in operation


_EVERYTHING = {"", "[]", "true", '["true"]'}


def kind_of(record: CommitRecord) -> str:
    """What an operator accepts with an operation that rolled commits back: restore or reset."""
    return "restore" if record.operation == "RESTORE" else "reset"


def accepting(pipeline: str, kind: str) -> str:
    """The command by which an operator accepts a rollback, see ``kind_of``."""
    return f"rivermouth resume CONFIG {pipeline} --accept {kind}"


def way_on(pipeline: str, rolled_back_by: Sequence[CommitRecord], known: bool) -> str:
    """What to do about rollbacks; ``known``: the log tells which entry is in effect."""
    undo = f"To undo it: RESTORE TABLE ... TO VERSION AS OF {rolled_back_by[0].version - 1}"
    if not known:
        return f"{undo}; or RESTORE again, by a version, and accept that"
    return f"{undo}; to go on: {accepting(pipeline, kind_of(rolled_back_by[-1]))}"


@dataclass(frozen=True)
class Left:
    """What a rollback leaves: where to go on, and what is known of the logs up to there.

    ``epochs`` are leader epochs in which they reached there; only these can tell whether a log was
    cut below it since. ``accepted`` are the accepted changes that are in effect.
    """

    position: Position
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    accepted: tuple[tuple[str, int], ...] = ()


Same = Callable[[Entry, str], bool]
"""Whether an entry was read from the topic of that name that there is now."""


def in_effect(entries: Sequence[Entry], standing: int) -> Entry | None:
    """The newest entry up to ``standing``; None where there is none that can be read."""
    return next((each for each in reversed(entries) if each.sequence <= standing), None)


def telling_of(entries: Sequence[Entry], standing: int) -> Entry | None:
    """The entry that tells what is in effect: that itself, or else the first that can be read.

    None where nothing is in effect.
    """
    if not standing:
        return None
    return in_effect(entries, standing) or next(iter(entries), None)


def left_by_restore(entries: Sequence[Entry], standing: int, same: Same) -> Left:
    """What is left once ``standing`` is the newest entry that still counts.

    ``entries`` and ``same`` are as for ``restored_position``.
    """
    telling = telling_of(entries, standing)
    accepted = telling.accepted if telling is not None else ()
    position = restored_position(entries, standing, same)
    return Left(position, _epochs(entries, standing, same), accepted)


def restored_position(entries: Iterable[Entry], standing: int, same: Same) -> Position:
    """Where to go on once ``standing`` is the newest entry that still counts.

    ``entries`` are all that can be read of the pipeline, in order; ``standing`` may be the
    one before them. A partition that was born later starts again where it was born, so that
    nothing between is skipped; where it was born in another topic, it is not known.
    """
    position, born = Position(), dict[TopicPartition, int]()
    for number, entry in enumerate(entries):
        if entry.sequence <= standing:
            position, born = entry.position, {}
        else:
            if number == 0 and entry.sequence > 1:
                starts = {each.topic_partition: each.from_offset for each in entry.ranges}
                position = Position({**entry.position.offsets, **starts})
            for each in entry.ranges:
                if same(entry, each.topic_partition.topic):
                    born.setdefault(each.topic_partition, each.from_offset)
    return Position({**born, **position.offsets})


def _epochs(entries: Iterable[Entry], standing: int, same: Same) -> dict[TopicPartition, int]:
    epochs: dict[TopicPartition, int] = {}
    for entry in entries:
        known = {each: n for each, n in entry.epochs.items() if same(entry, each.topic)}
        epochs = {**known, **({} if entry.sequence <= standing else epochs)}
    return epochs


@dataclass(frozen=True)
class History:
    """What the log says of a pipeline's ledger up to ``version``.

    ``where`` names pipeline and table in messages. ``first`` and ``version`` are the first and the
    newest version replayed; None: none yet. ``recorded`` is the newest entry in the log, and
    ``recovered`` the one that only the offsets table had, if the replay began with one.
    ``sequence`` is the highest sequence seen, 0 where there is no entry. ``effective`` is that of
    the entry in effect, 0 for none; None: nobody can tell. ``rolled_back_by`` are the first and the
    newest of the operations that rolled entries back and are not accepted yet;
    ``written_over_at`` is the version at which an entry was written over such an operation.
    ``unexplained`` are rollbacks before the first readable entry.
    ``broken`` says what is wrong with the entries, in order: the first faults.
    """

    pipeline: str
    where: str
    first: int | None = None
    version: int | None = None
    recorded: Recorded | None = None
    recovered: Entry | None = None
    sequence: int = 0
    effective: int | None = 0
    periods: Period | None = field(default=None, repr=False)
    rolled_back_by: tuple[CommitRecord, ...] = ()
    written_over_at: int | None = None
    unexplained: tuple[CommitRecord, ...] = ()
    broken: tuple[Halt, ...] = ()

    @staticmethod
    def recovered_from(pipeline: str, where: str, entry: Entry) -> History:
        """A history that begins with an entry that only the offsets table knows."""
        number = entry.sequence
        return History(pipeline, where, recovered=entry, sequence=number, effective=number)

    def shortened(self) -> History:
        """The same with the newest periods alone: a run must not grow with what it commits."""
        kept: Period | None = None
        periods = self.periods.backwards() if self.periods is not None else iter(())
        for each in reversed([*islice(periods, PERIODS_KEPT)]):
            kept = replace(each, before=kept)
        return replace(self, periods=kept)

    @property
    def newest(self) -> Entry | None:
        """The newest entry: in the log, or recovered."""
        return self.recorded.entry if self.recorded is not None else self.recovered

    @property
    def position(self) -> Position:
        """The position after the newest entry."""
        return self.newest.position if self.newest is not None else Position()

    @property
    def whole(self) -> bool:
        """Whether the log begins with version 0: clean-up took nothing."""
        return self.first == 0

    def effective_sequences(self, entries: Iterable[Recorded]) -> set[int]:
        """The entries that the table rests on, and the last of those cleaned up before them.

        ``entries`` are all that were replayed.
        """
        before = {each.entry.sequence: rests_on(each.entry) for each in entries}
        found, sequence = set[int](), self.effective or 0
        while sequence and sequence not in found:
            found.add(sequence)
            sequence = before.get(sequence, 0)
        return found

    @property
    def rolled_back_since(self) -> int | None:
        """The version from which on entries are rolled back; None: all of them are in effect."""
        return self.rolled_back_by[0].version if self.rolled_back_by else None

    @property
    def faults(self) -> tuple[Halt, ...]:
        """Everything found wrong, rollbacks last. Nothing may be written while there is any."""
        if not self.rolled_back_by:
            return self.broken
        return (
            *self.broken,
            self._torn() if self.written_over_at is not None else self._rolled_back(),
        )

    def _torn(self) -> LedgerBroken:
        written_over_at = self.written_over_at or 0
        known = known_before(self.periods, written_over_at)
        back = f"RESTORE TABLE ... TO VERSION AS OF {known}, then run again to see the way on"
        reset = f"TRUNCATE, then: {accepting(self.pipeline, 'reset')}"
        return LedgerBroken(
            f"version {written_over_at} was written over commits that were rolled back",
            where=self.where,
            expected="no RESTORE, REPLACE or TRUNCATE during a batch",
            found=f"one at version {self.rolled_back_since}",
            remedy=reset if known is None else back,
        )

    def _rolled_back(self) -> TableUndone:
        first = self.rolled_back_by[0]
        return TableUndone(
            f"{first.operation} at version {first.version} undid commits of this pipeline",
            where=self.where,
            expected=f"entry {self.sequence} to be in effect",
            found=_shown(self.effective),
            remedy=way_on(self.pipeline, self.rolled_back_by, self.effective is not None),
        )


def rests_on(entry: Entry) -> int:
    """The sequence of the entry that was in effect before this one; 0: none was."""
    return entry.sequence - 1 if entry.accepts is None else entry.accepts.standing


def _shown(effective: int | None) -> str:
    if effective is None:
        return "nobody knows which: a point in time, or before log clean-up"
    return f"entry {effective}" if effective else "none"
