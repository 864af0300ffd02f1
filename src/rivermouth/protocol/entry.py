"""The ledger entry: what one commit of ours says about itself. Pure.

A commit of a pipeline carries a ``txn`` action (see ``commits.app_id``) and, as ``userMetadata``,
one line of JSON (``entry_json``): an ``Entry``. Before the commit exists there is its ``Draft``.
The commit adds its id, the version that it was planned on and, where known, the counts of its rows.

An entry that accepts changes moves the position in another way than by reading: it says what was
changed, and where each partition stood.

Deleted rows are named by the offsets of their records, so that a ledger never holds a key or a
value: a person's data must not live on in the record of their erasure. In an entry::

    "deletes": [{"version": 12, "rows": {"orders": {"0": [5, 2, 7, 1]}}},
                {"version": 15, "unlisted": 3}]

The numbers of a partition are the first offset, then in turn how many offsets are deleted and how
many are not: here 5 and 6, then 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, number


class Change(Enum):
    """A kind of change; the value is the word of ``resume --accept``."""

    IDENTITY = "identity"
    """A setting that gives the pipeline its identity has another value."""
    PARTITIONS = "partitions"
    """Recorded partitions are gone."""
    TRUNCATION = "truncation"
    """Logs were cut below the position; they hold other records from there on."""
    TOPIC = "topic"
    """Topics were deleted and created again."""
    CLUSTER = "cluster"
    """Another cluster answers: all topics are others."""


NEVER_ACCEPTED = {
    "table": "the rows are in another table",
    "mode": "the rows that are there were made by another rule",
    "keys": "the rows that are there have other keys",
    "metrics": "the totals that are there were measured in another way",
    "order_by": "another order decided which rows are there",
}
"""Settings of which a change cannot be accepted, with the reason."""


def accepted_changes(words: str) -> frozenset[Change]:
    """The kinds that ``words`` name, with commas; none where it names anything else."""
    named = {each.strip() for each in words.split(",")}
    known = {each.value: each for each in Change}
    return frozenset(known[each] for each in named) if named <= known.keys() else frozenset()


@dataclass(frozen=True)
class Move:
    """Where the position of a partition goes; None: it was not known, or it is gone.

    Earlier ranges of the partition mean other records than Kafka holds now: those from ``now`` on
    where its log was cut, else all of them.
    """

    topic_partition: TopicPartition
    was: int | None
    now: int | None


@dataclass(frozen=True)
class Changes:
    """The changes that one entry accepts, and what was recorded before.

    ``settings`` are the earlier values of settings, ``cluster`` is the id of the earlier cluster
    (empty: it is the same), ``topics`` the earlier ids of topics. A partition that is not in
    ``moved`` holds the same records at the same offsets.
    """

    kinds: tuple[Change, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[Move, ...] = ()

    def __post_init__(self) -> None:
        of_topics = bool({Change.TOPIC, Change.CLUSTER} & {*self.kinds})
        fits = (
            bool(self.kinds)
            and bool(self.settings) == (Change.IDENTITY in self.kinds)
            and bool(self.cluster) == (Change.CLUSTER in self.kinds)
            and (of_topics or not self.topics)
        )
        if not fits:
            raise ValueError(f"changes that do not fit their kinds: {self}")

    @property
    def of_source(self) -> bool:
        """Whether Kafka's part has changed, and not settings alone."""
        return bool({*self.kinds} - {Change.IDENTITY})

    def renews(self, topic: str) -> bool:
        """Whether the topic is another one than before."""
        return bool(self.cluster) or topic in self.topics

    def applied(self, position: Position) -> Position:
        """The position after the changes. Raises ValueError where they do not allow a move."""
        moved = dict(position.offsets)
        for each in self.moved:
            place = each.topic_partition
            if moved.pop(place, None) != each.was:
                raise ValueError(f"{place} stood at {position.get(place)}, not at {each.was}")
            if not self._allows(each):
                raise ValueError(f"{place} may not move from {each.was} to {each.now}")
            if each.now is not None:
                moved[place] = each.now
        return Position(moved)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of an entry; what is empty is left out."""
        facts: dict[str, Any] = {
            "settings": dict(self.settings),
            "cluster": self.cluster,
            "topics": dict(self.topics),
            "moved": [
                [each.topic_partition.topic, each.topic_partition.partition, each.was, each.now]
                for each in self.moved
            ],
        }
        kinds = [each.value for each in self.kinds]
        return {"kinds": kinds, **{name: value for name, value in facts.items() if value}}

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Changes:
        """The inverse of ``as_dict``. Raises LookupError, TypeError or ValueError."""
        return Changes(
            kinds=tuple(Change(each) for each in facts["kinds"]),
            settings=dict(facts.get("settings", {})),
            cluster=str(facts.get("cluster", "")),
            topics=dict(facts.get("topics", {})),
            moved=tuple(
                Move(TopicPartition(topic, partition), was, now)
                for topic, partition, was, now in facts.get("moved", ())
            ),
        )

    def _allows(self, move: Move) -> bool:
        if move.now is None:
            return Change.PARTITIONS in self.kinds and move.was is not None
        if self.renews(move.topic_partition.topic):
            return True
        cut = move.was is not None and move.now < move.was
        return cut and Change.TRUNCATION in self.kinds


RUNS_MAX = 5_000
"""How many runs of offsets one entry lists: some 60 KB."""


@dataclass(frozen=True)
class Deleted:
    """What the DELETE at ``version`` took.

    ``rows`` are the offsets of the rows' records, in order. Where nobody can tell them any more,
    ``unlisted`` is how many rows the DELETE took at most. Raises ValueError unless it is one of
    both.
    """

    version: int
    rows: tuple[OffsetRange, ...] = ()
    unlisted: int = 0

    def __post_init__(self) -> None:
        if self.unlisted < 0 or bool(self.rows) == bool(self.unlisted):
            raise ValueError(f"rows, or a number of them: {self}")

    @property
    def count(self) -> int:
        """How many rows it took, at most where they are not listed."""
        return sum(each.span for each in self.rows) + self.unlisted


def listed(deleted: Deleted) -> dict[str, Any]:
    """As an entry tells it, see the module."""
    facts: dict[str, Any] = {"version": deleted.version}
    if deleted.unlisted:
        facts["unlisted"] = deleted.unlisted
    numbers: dict[str, dict[str, list[int]]] = {}
    reached: dict[TopicPartition, int] = {}
    for each in deleted.rows:
        of_partition = numbers.setdefault(each.topic, {}).setdefault(str(each.partition), [])
        before = reached.get(each.topic_partition, 0)
        of_partition += [each.from_offset - before, each.span]
        reached[each.topic_partition] = each.until_offset
    return {**facts, "rows": numbers} if numbers else facts


def from_listed(facts: Mapping[str, Any]) -> Deleted:
    """The inverse of ``listed``. Raises LookupError, TypeError, ValueError or AttributeError."""
    rows = (
        each
        for topic, partitions in facts.get("rows", {}).items()
        for partition, numbers in partitions.items()
        for each in _runs(TopicPartition(topic, int(partition)), numbers)
    )
    return Deleted(number(facts["version"]), tuple(rows), number(facts.get("unlisted", 0)))


def _runs(place: TopicPartition, numbers: Sequence[int]) -> Iterator[OffsetRange]:
    at = 0
    for skipped, span in zip(numbers[::2], numbers[1::2], strict=True):
        start = at + number(skipped)
        at = start + number(span)
        yield OffsetRange(place, start, at)


def portions(deletes: Iterable[Deleted], most: int = RUNS_MAX) -> Iterator[tuple[Deleted, ...]]:
    """The same rows in portions of at most ``most`` runs: what one entry may list each."""
    portion: list[Deleted] = []
    room = most
    for each in deletes:
        if each.unlisted:
            portion.append(each)
        rows = each.rows
        while rows:
            if not room:
                yield tuple(portion)
                portion, room = [], most
            portion.append(Deleted(each.version, rows[:room]))
            rows, room = rows[room:], max(0, room - len(rows))
    if portion:
        yield tuple(portion)


@dataclass(frozen=True)
class RowCounts:
    """Records of one range that took effect, that went to quarantine, and that make no row.

    An applied record of an upsert may be replaced in its own batch: it still counts.
    """

    applied: int
    quarantined: int
    skipped: int = 0

    @property
    def records(self) -> int:
        """All of them."""
        return self.applied + self.quarantined + self.skipped


Counts = tuple[RowCounts, ...]
"""The counts of a commit: one for each range of its entry, in the same order."""


@dataclass(frozen=True)
class Accepted:
    """What an operator accepted: that an operation of others rolled commits back.

    ``kind`` is ``restore`` or ``reset`` (the table was emptied or replaced), ``version`` the
    operation's, ``standing`` the sequence that it left in effect, 0 for none.
    """

    kind: str
    version: int
    standing: int


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What an entry will say, as far as it is decided before the commit exists.

    ``position`` is the state *after* the commit, so that the newest entry alone is enough to
    resume. ``config`` holds the settings that give the pipeline its identity, in clear, so that a
    change can be named. ``lost`` are those of the ``ranges`` that Kafka had deleted before they
    were read. ``accepts`` marks the kind of entry whose position goes back with the table, and
    ``changes`` the kind that moves it because the source was changed. ``accepted`` are the changes
    that were accepted so far: each kind, with the sequence of its entry. ``epochs`` are
    leader epochs in which each partition's log reached to the position, ``ends`` the end offsets
    of the partitions' logs when the entry was planned. ``columns`` are names and types by which
    the records were decoded; empty: not known. ``decoder`` names the version of the decoder and its
    settings, see ``Pipeline.decoder``. ``metadata`` is what ``_kafka`` tells of a
    record beside its place and time. ``deletes`` are rows that an operator
    accepted as deleted on purpose. ``replayed`` are ranges that were read before, and whose records
    were applied once more. ``transform`` is what made the rows of the records: a function, or
    ``select``; empty: nothing did. ``explode``: each record may have any number of rows.
    ``assigned`` are the topics of which only some partitions are read, on purpose. ``ranges`` are
    in order. The first sequence is 1.
    Raises ValueError where the parts do not fit together.
    """

    pipeline: str
    sequence: int
    cluster: str
    table: str
    topics: Mapping[str, str]
    ranges: tuple[OffsetRange, ...]
    position: Position
    config: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[OffsetRange, ...] = ()
    accepts: Accepted | None = None
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Position = field(default_factory=Position)
    columns: tuple[tuple[str, str], ...] = ()
    decoder: Mapping[str, Any] = field(default_factory=dict)
    metadata: tuple[str, ...] = ()
    deletes: tuple[Deleted, ...] = ()
    replayed: tuple[OffsetRange, ...] = ()
    changes: Changes | None = None
    accepted: tuple[tuple[str, int], ...] = ()
    transform: str = ""
    explode: bool = False
    assigned: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.sequence < 1:
            raise ValueError(f"sequence {self.sequence}: the first is 1")
        for each in self.ranges:
            if self.position.get(each.topic_partition) != each.until_offset:
                raise ValueError(f"{each} does not end at the position")
        if not set(self.lost) <= set(self.ranges):
            raise ValueError("a lost range that is none of the ranges")
        if self.deletes and any(each.span for each in self.ranges):
            raise ValueError("an entry that accepts deletes covers no offsets")
        if self.replayed and any(each.span for each in self.ranges):
            raise ValueError("an entry of a replay covers no offsets")
        accepting = self.accepts is not None or self.changes is not None
        if accepting and any(each.span for each in self.ranges):
            raise ValueError("an entry that accepts a rollback or changes covers no offsets")

    def entry(self, commit: str, base: int | None, rows: Counts | None, left_out: int = 0) -> Entry:
        """The entry of the commit with this id, see ``Entry``. Raises ValueError."""
        return Entry(**vars(self), commit=commit, base=base, rows=rows, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class Entry(Draft):
    """What one commit records, whole enough to resume from it alone.

    ``commit`` is its own id, ``base`` the version of the table that it was planned on (None: not
    known). ``rows`` are the counts, parallel to ``ranges``; None where they are not known before
    the commit, which needs a row for each record. ``left_out`` are the records of a pipeline that
    sends of which its own code made no row. Raises ValueError where the parts do not fit together.
    """

    commit: str
    base: int | None = None
    rows: Counts | None = None
    left_out: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows is not None and len(self.rows) != len(self.ranges):
            raise ValueError(f"{len(self.rows)} counts for {len(self.ranges)} ranges")
        if self.explode and self.rows is None:
            raise ValueError("no counts, and rows that are not one for each record")
        if self.left_out < 0:
            raise ValueError(f"{self.left_out} records left out")

    @property
    def draft(self) -> Draft:
        """Its draft: what was decided before the commit existed."""
        return Draft(**{each.name: getattr(self, each.name) for each in fields(Draft)})


def topics_begun(newest: Draft | None) -> frozenset[str]:
    """The topics that have a position by the newest entry; none where there is no entry.

    ``Draft.topics`` tells ids of more: an accepting entry has that of a topic that was added to
    the configuration and is not read yet.
    """
    return frozenset(each.topic for each in newest.position) if newest is not None else frozenset()


def starts_anew(each: TopicPartition, newest: Draft | None) -> bool:
    """Whether ``start`` decides where a partition starts.

    So it is with a new topic, and where only other partitions of the topic were read so far. A
    partition that a topic gained while all of it was read is due from offset 0.
    """
    if newest is None or newest.position.get(each) is not None:
        return newest is None
    return each.topic in newest.assigned or each.topic not in topics_begun(newest)
