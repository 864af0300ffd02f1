"""Operations of others that roll commits back: which do, what accepting them means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rivermouth.protocol.commits import CommitRecord
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position, TopicPartition


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
    stood, born = Position(), dict[TopicPartition, int]()
    for number, entry in enumerate(entries):
        if entry.sequence <= standing:
            stood, born = entry.position, {}
        else:
            if number == 0 and entry.sequence > 1:
                starts = {each.topic_partition: each.from_offset for each in entry.ranges}
                stood = Position({**entry.position.offsets, **starts})
            for each in entry.ranges:
                if same(entry, each.topic_partition.topic):
                    born.setdefault(each.topic_partition, each.from_offset)
    return Position({**born, **stood.offsets})


def _epochs(entries: Iterable[Entry], standing: int, same: Same) -> dict[TopicPartition, int]:
    epochs: dict[TopicPartition, int] = {}
    for entry in entries:
        told = {each: n for each, n in entry.epochs.items() if same(entry, each.topic)}
        epochs = {**told, **({} if entry.sequence <= standing else epochs)}
    return epochs
