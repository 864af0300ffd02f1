"""What the commits of a table tell of a pipeline over time: sums, skew, and what is notable. Pure.

The commits come newest first, and each is forgotten once it was added. What is kept does not grow
with their number, but for the ids of those that left bad records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rivermouth.operate.history import Event
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.report.buckets import Buckets
from rivermouth.warehouse.delta.actions import Action
from rivermouth.warehouse.delta.log import newest_record_ms

_QUIET = {"batch", "heartbeat", "new partitions", "OPTIMIZE", "VACUUM START", "VACUUM END"}
"""What is expected of a table: the list of what happened goes without."""
_NOTABLE = 30


@dataclass(frozen=True)
class Limits:
    """How much is told of one pipeline, so that the page stays small however many there are.

    ``buckets`` of each chart, ``cells`` of the heat map, ``versions`` of the table, ``samples`` of
    bad records.
    """

    buckets: int
    cells: int
    versions: int
    samples: int = 0

    @staticmethod
    def of(pipelines: int, samples: int = 0) -> Limits:
        """Those of each of so many pipelines."""
        share = max(1, pipelines)
        return Limits(
            buckets=min(200, max(50, 4_000 // share)),
            cells=min(2_400, max(150, 15_000 // share)),
            versions=min(20, max(3, 200 // share)),
            samples=samples,
        )


@dataclass(frozen=True)
class Weight:
    """What the actions of a commit tell beside its entry.

    ``size``: the bytes of the files that it added. ``rows``: theirs; None: not noted.
    ``newest_ms``: the time of the newest record in them. ``took_ms``: how long its writer worked on
    it. ``columns``: those that the table has from then on, where the commit says it.
    """

    size: int = 0
    rows: int | None = None
    newest_ms: int | None = None
    took_ms: int | None = None
    columns: tuple[str, ...] | None = None

    @staticmethod
    def of(actions: Sequence[Action]) -> Weight:
        """That of a commit. Raises LookupError, TypeError, ValueError or AttributeError."""
        files = [each["add"] for each in actions if "add" in each]
        noted = [json.loads(each["stats"]) for each in files if each.get("stats")]
        rows = [each.get("numRecords") for each in noted]
        known = len(rows) == len(files) and None not in rows
        info = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
        took = (info.get("operationMetrics") or {}).get("executionTimeMs")
        told = next((each["metaData"] for each in actions if "metaData" in each), None)
        return Weight(
            size=sum(int(each.get("size") or 0) for each in files),
            rows=sum(map(int, rows)) if known else None,
            newest_ms=newest_record_ms(noted),
            took_ms=None if took is None else int(took),
            columns=None if told is None else _columns(told["schemaString"]),
        )


def _columns(schema: str) -> tuple[str, ...]:
    return tuple(str(each["name"]) for each in json.loads(schema)["fields"])


@dataclass
class Sums:
    """What the commits of one bucket brought. Times are the longest of them, in ms.

    ``lag_ms``: from the newest record of a commit to the commit. ``between_ms``: from the commit
    before. ``took_ms``: what the writer says that a commit took. None: nobody tells.
    """

    commits: int = 0
    records: int = 0
    bad: int = 0
    size: int = 0
    lag_ms: int | None = None
    between_ms: int | None = None
    took_ms: int | None = None

    def add(self, other: Sums) -> None:
        """Take what another bucket holds."""
        self.commits += other.commits
        self.records += other.records
        self.bad += other.bad
        self.size += other.size
        self.lag_ms = _longest(self.lag_ms, other.lag_ms)
        self.between_ms = _longest(self.between_ms, other.between_ms)
        self.took_ms = _longest(self.took_ms, other.took_ms)


def _longest(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


@dataclass(frozen=True)
class Bad:
    """The bad records of one commit, by the ledger."""

    at_ms: int
    records: int


@dataclass
class Totals:
    """Sums over all commits that were read.

    ``uncounted`` of the ``records`` are rows of files, or offsets, where the entry has no counts.
    """

    commits: int = 0
    entries: int = 0
    offsets: int = 0
    records: int = 0
    bad: int = 0
    skipped: int = 0
    lost: int = 0
    uncounted: int = 0
    taken_back: int = 0


@dataclass
class Series:
    """Takes the commits of a table, the newest first."""

    limits: Limits
    totals: Totals = field(default_factory=Totals)
    versions: list[Event] = field(default_factory=list)
    notable: list[Event] = field(default_factory=list)
    schema: list[tuple[Event, str]] = field(default_factory=list)
    """Commits that changed the columns, with what they did."""
    bad: dict[str, Bad] = field(default_factory=dict)
    """By the id of the commit."""
    newest: Event | None = None
    oldest: Event | None = None

    def __post_init__(self) -> None:
        self.sums: Buckets[Sums] = Buckets(self.limits.buckets, Sums.add)
        self.skew: Buckets[Counter[TopicPartition]] = Buckets(
            min(60, self.limits.buckets), Counter.update
        )
        self._later_ms: int | None = None  # when the next entry was committed
        self._columns: tuple[Event, tuple[str, ...]] | None = None

    def take(self, event: Event, weight: Weight) -> None:
        """Add the commit before those that were taken."""
        self.totals.commits += 1
        self.newest, self.oldest = self.newest or event, event
        if weight.columns is not None:
            self._altered(weight.columns)
            self._columns = event, weight.columns
        if event.what not in _QUIET and len(self.notable) < _NOTABLE:
            self.notable.append(event)
        if event.entry is not None:
            if len(self.versions) < self.limits.versions:
                self.versions.append(event)
            self._entered(event, event.entry, weight)

    def end(self, whole: bool) -> None:
        """All were taken. ``whole``: there is none before; then the oldest made the table."""
        self._altered(() if whole else None)

    def _entered(self, event: Event, entry: Entry, weight: Weight) -> None:
        at_ms, counted = event.record.timestamp_ms, event.counted()
        offsets = event.offsets or 0
        applied, bad, skipped = counted or (offsets if weight.rows is None else weight.rows, 0, 0)
        records = applied + bad + skipped
        totals = self.totals
        totals.entries += 1
        totals.offsets += offsets
        totals.records += records
        totals.bad += bad
        totals.skipped += skipped
        totals.lost += sum(each.span for each in entry.lost)
        totals.uncounted += 0 if counted else records
        totals.taken_back += event.stands is False
        if bad:
            self.bad[entry.commit] = Bad(at_ms, bad)
        sums = Sums(1, records, bad, weight.size, took_ms=weight.took_ms)
        if weight.newest_ms is not None and offsets:
            sums.lag_ms = max(0, at_ms - weight.newest_ms)
        self.sums.put(at_ms, sums)
        if self._later_ms is not None:
            between = Sums(between_ms=max(0, self._later_ms - at_ms))
            self.sums.put(self._later_ms, between)
        self._later_ms = at_ms
        moved = {each.topic_partition: each.span for each in entry.ranges if each.span}
        if moved:
            self.skew.put(at_ms, Counter(moved))

    def _altered(self, before: tuple[str, ...] | None) -> None:
        """What a later commit did to the columns that a table had ``before``; None: not known."""
        if self._columns is None or len(self.schema) >= _NOTABLE:
            return
        event, after = self._columns
        if before is None:
            self.schema.append((event, event.what if "COLUMN" in event.what else "not compared"))
        elif what := difference(before, after):
            self.schema.append((event, what))


def difference(before: Sequence[str], after: Sequence[str]) -> str:
    """What became of the columns of a table; empty where they are the same."""
    parts = {
        "added": [each for each in after if each not in before],
        "dropped": [each for each in before if each not in after],
    }
    return "; ".join(f"{word} {', '.join(names)}" for word, names in parts.items() if names)


def heat(series: Series) -> tuple[list[tuple[str, int, list[int]]], int, int]:
    """The rows of the heat map: each partition with its offsets, all of them and by bucket; how
    many partitions are left out; and the offsets of these. Those with most offsets are shown.
    """
    columns = [each or Counter[TopicPartition]() for each in series.skew.dense()]
    sums: Counter[TopicPartition] = Counter()
    for each in columns:
        sums.update(each)
    room = max(1, series.limits.cells // max(1, len(columns)))
    shown = sorted(place for place, _ in sums.most_common(room))
    rows = [(str(p), sums[p], [each[p] for each in columns]) for p in shown]
    return rows, len(sums) - len(shown), sums.total() - sum(sums[each] for each in shown)


def positions(entry: Entry, most: int) -> str:
    """The next offset of each partition, for a cell of a table; at most so many of them."""
    found, topic = list[str](), ""
    for place, at in islice(entry.position.offsets.items(), most):
        named = f"{place.partition}: {at:,}"
        found.append(named if place.topic == topic else f"{place.topic} {named}")
        topic = place.topic
    more = len(entry.position.offsets) - most
    return ", ".join(found) + (f", and {more:,} more" if more > 0 else "")


def as_columns(sums: Buckets[Sums]) -> dict[str, Any]:
    """The series for the page: a list for each figure, by bucket."""
    cells = [each or Sums() for each in sums.dense()]
    return {
        "from": sums.from_ms // 1000,
        "width": sums.width_ms // 1000,
        "records": [each.records for each in cells],
        "bad": [each.bad for each in cells],
        "bytes": [each.size for each in cells],
        "commits": [each.commits for each in cells],
        **{
            name: [_seconds(getattr(each, f"{name}_ms")) for each in cells]
            for name in ("lag", "between", "took")
        },
    }


def _seconds(ms: int | None) -> float | int | None:
    if ms is None:
        return None
    return round(ms / 1000) if ms >= 10_000 else round(ms / 1000, 2)
