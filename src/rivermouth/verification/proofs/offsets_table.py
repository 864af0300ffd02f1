"""The offsets table against the ledger: one row for each range of each entry, and no other.

A run writes the rows of an entry a moment after its commit. Where the configuration has an
``offsets_retention``, older rows may be gone: all but the newest of each partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rivermouth.config import OFFSETS_TABLE, Config, Pipeline
from rivermouth.verification.ledger.entry import Commits, LedgerEntry, LedgerRange, Partition, shown
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings, Kind, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Tables

_RANGE = ("from_offset", "until_offset", "end_offset", "commit", "table_version", "table_name")
_SOURCE = ("topic_id", "cluster_id")
_COUNTS = ("records", "applied", "quarantined", "skipped")
WAIT_S = 3.0
_NEW_MS = 60_000
_KEYS = ("sequence", "topic", "partition")

RowKey = tuple[int, str, int]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Allowed:
    """Which rows may be missing: those of entries older than ``retention_ms`` (None: none).
    ``now_ms`` is the time in ms since 1970. ``wait`` gives a run the time to write the newest rows.
    """

    now_ms: float
    retention_ms: float | None = None
    wait: Callable[[], object] = lambda: time.sleep(WAIT_S)

    @staticmethod
    def by(config: Config) -> Allowed:
        """What the configuration allows now."""
        age = config.offsets_retention
        return Allowed(time.time() * 1000, age.total_seconds() * 1000 if age else None)

    def is_new(self, entry: LedgerEntry) -> bool:
        """Whether a run may be writing its rows at this moment."""
        return self.now_ms - entry.committed_ms < _NEW_MS

    def is_old(self, entry: LedgerEntry) -> bool:
        """Whether its rows may have been deleted."""
        age_ms = self.now_ms - entry.committed_ms
        return self.retention_ms is not None and age_ms > self.retention_ms


def verify_offsets_table(
    tables: Tables,
    ledger: Ledger,
    log: Commits,
    pipeline: Pipeline,
    findings: Findings,
    subject: Subject | None,
    allowed: Allowed,
) -> None:
    """Compare the offsets table row by row with the ``ledger``, which was read from ``log``.

    Numbers of records are compared where the whole range was counted again; ``subject`` is None
    where nothing was counted. Raises Unreadable.
    """
    ranges = _Ranges(ledger)
    compared = _Comparison(ranges, ledger, log, str(pipeline.target.table), findings, subject)
    newest = ledger.since.sequence if ledger.since else 0
    for key, found in _rows(tables, pipeline.ledger_name, newest):
        newest = max(newest, key[0])
        compared.take(key, found)
    arrived = True
    while arrived and any(
        allowed.is_new(each) for each, _ in ranges.left() if each.sequence > newest
    ):
        allowed.wait()
        taken = newest
        for key, found in _rows(tables, pipeline.ledger_name, taken):
            newest = max(newest, key[0])
            if key[0] > taken:
                compared.take(key, found)
        arrived = newest > taken
    for version in sorted(compared.lost):
        line = f"the offsets table has a row of version {version}, the table's log does not have it"
        findings.add(Kind.FAULT, line)
    _report_left(ranges, ledger, findings, allowed)


def _report_left(ranges: _Ranges, ledger: Ledger, findings: Findings, allowed: Allowed) -> None:
    """The ranges without a row: wrong, or old and deleted."""
    newest = {each.partition: entry for entry in ledger.recorded for each in entry.ranges}
    deleted = 0
    for entry, partition in ranges.left():
        if allowed.is_old(entry) and newest[partition] is not entry:
            deleted += 1
            continue
        where = f"offsets table, sequence {entry.sequence} {shown(partition)}"
        findings.add(Kind.OFFSETS_TABLE, f"{where}: no row")
    line = f"{deleted} rows of the offsets table: deleted by offsets_retention"
    findings.leave(Unchecked.PROJECTED, line, deleted)


class _Comparison:
    """Compares rows of one pipeline; ``lost`` are versions of rows that the log does not have."""

    def __init__(
        self,
        ranges: _Ranges,
        ledger: Ledger,
        log: Commits,
        table: str,
        findings: Findings,
        subject: Subject | None,
    ) -> None:
        self._ranges = ranges
        self._ledger = ledger
        self._log = log
        self._table = table
        self._findings = findings
        self._subject = subject
        self._first = ledger.recorded[0].sequence if ledger.recorded else 1
        self.lost: set[int] = set()

    def take(self, key: RowKey, found: Facts) -> None:
        """Compare the next row."""
        where = f"offsets table, sequence {key[0]} {shown(key[1:])}"
        expected, again = self._ranges.take(key)
        if again:
            self._findings.add(Kind.OFFSETS_TABLE, f"{where}: more than one row")
        elif expected is not None:
            facts = _facts(*expected, self._table)
            counts = _counts(*expected, self._subject) if self._subject is not None else {}
            wrong = _differences({**facts, **counts}, found)
            if wrong:
                self._findings.add(Kind.OFFSETS_TABLE, f"{where}: {wrong}")
        elif _is_unknown(key, found, self._first, self._ledger):
            self._findings.add(Kind.OFFSETS_TABLE, f"{where}: no such range in the ledger")
        else:
            version = found["table_version"]
            if version > self._ledger.version and not self._log.has(version):
                self.lost.add(version)


class _Ranges:
    """The ranges of the ledger; each is looked up in the same time, however many there are.

    Memory: a byte for each range. Entries with the same partitions share where each one stands.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._entries: dict[int, tuple[LedgerEntry, Mapping[Partition, int], bytearray]] = {}
        places: dict[tuple[Partition, ...], Mapping[Partition, int]] = {}
        for entry in ledger.recorded:
            partitions = tuple(each.partition for each in entry.ranges)
            if partitions not in places:
                places[partitions] = {each: place for place, each in enumerate(partitions)}
            taken = bytearray(len(partitions))
            self._entries[entry.sequence] = (entry, places[partitions], taken)

    def take(self, key: RowKey) -> tuple[tuple[LedgerEntry, LedgerRange] | None, bool]:
        """The entry and range of a row, if there is one; and whether it was taken before."""
        if key[0] not in self._entries:
            return None, False
        entry, places, taken = self._entries[key[0]]
        place = places.get((key[1], key[2]))
        if place is None:
            return None, False
        again, taken[place] = bool(taken[place]), 1
        return (entry, entry.ranges[place]), again

    def left(self) -> Iterator[tuple[LedgerEntry, Partition]]:
        """Entry and partition of every range that was not taken."""
        for entry, places, taken in self._entries.values():
            for partition, place in places.items():
                if not taken[place]:
                    yield entry, partition


def _differences(expected: Facts, found: Facts) -> str:
    """The columns that differ, with what is there and what the ledger says."""
    return ", ".join(
        f"{name} is {found[name]}, expected {value}"
        for name, value in expected.items()
        if found[name] != value
    )


def _is_unknown(key: RowKey, found: Facts, first: int, ledger: Ledger) -> bool:
    """Whether a row without an entry is wrong: not older and not newer than what was read.

    A newer row belongs to an entry that was committed after the log was read.
    """
    restarted = bool(ledger.recorded) and ledger.recorded[0].accepts == "reset"
    older = (ledger.trimmed or restarted) and key[0] < first
    return not older and not found["table_version"] > ledger.version


def _facts(entry: LedgerEntry, each: LedgerRange, table_name: str) -> dict[str, Any]:
    return {
        "from_offset": each.start,
        "until_offset": each.until,
        "end_offset": entry.ends.get(each.partition),
        "commit": entry.commit,
        "table_version": entry.version,
        "table_name": table_name,
        "topic_id": entry.topics.get(each.partition[0]),
        "cluster_id": entry.cluster,
    }


def _counts(entry: LedgerEntry, each: LedgerRange, subject: Subject) -> dict[str, int]:
    """The counts of a range as Kafka and the quarantine show them; empty where unknown."""
    if each.start == each.until:
        return dict.fromkeys(_COUNTS, 0)
    span = subject.coverage.spans.get(each.partition)
    if span is None:
        return {}
    effective = subject.ledger.effective
    first, last = np.searchsorted(span.starts, [each.start, each.start + 1]).tolist()
    # The same range of an entry that was undone may have been read from another topic or log.
    mine = [at for at in range(first, last) if effective[span.entries[at]].version == entry.version]
    same = [at for at in mine if span.untils[at] == each.until]
    if not same or not subject.countable(each.partition, span, same[0]):
        return {}
    counts = (span.visible, span.quarantined, span.skipped)
    visible, quarantined, skipped = (int(each[same[0]]) for each in counts)
    applied = visible - quarantined - skipped
    return dict(zip(_COUNTS, (visible, applied, quarantined, skipped), strict=True))


def _rows(tables: Tables, pipeline: str, after: int) -> Iterator[tuple[RowKey, Facts]]:
    if not tables.exist(OFFSETS_TABLE):
        return
    columns = [*_KEYS, *_RANGE, *_SOURCE, *_COUNTS]
    wanted = f"pipeline = '{pipeline}'" + (f" AND sequence > {after}" if after else "")
    for batch in tables.rows(OFFSETS_TABLE).batches(columns, wanted):
        for row in batch.to_pylist():
            yield (row["sequence"], row["topic"], row["partition"]), row
