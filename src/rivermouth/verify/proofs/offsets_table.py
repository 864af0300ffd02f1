"""The offsets table against the ledger: one row for each range of each entry, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rivermouth.config import OFFSETS_TABLE, Pipeline
from rivermouth.verify.ledger.commits import Commits
from rivermouth.verify.ledger.entry import LedgerEntry, LedgerRange, Partition, shown
from rivermouth.verify.ledger.log import Ledger
from rivermouth.verify.result import Findings, Kind
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.ports import Tables

_RANGE = ("from_offset", "until_offset", "end_offset", "commit", "table_version", "table_name")
_SOURCE = ("topic_id", "cluster_id")
_COUNTS = ("records", "applied", "quarantined")
_KEYS = ("sequence", "topic", "partition")

RowKey = tuple[int, str, int]
Facts = Mapping[str, Any]


def verify_offsets_table(
    tables: Tables,
    ledger: Ledger,
    log: Commits,
    pipeline: Pipeline,
    findings: Findings,
    subject: Subject | None,
) -> None:
    """Compare the offsets table row by row with the ``ledger``, which was read from ``log``.

    ``records``, ``applied`` and ``quarantined`` are compared where the whole range was counted
    again; ``subject`` is None where nothing was counted. Raises Unreadable.
    """
    ranges = _Ranges(ledger)
    name = str(pipeline.target.table)
    first = ledger.recorded[0].sequence if ledger.recorded else 1
    lost: set[int] = set()
    for key, found in _rows(tables, pipeline.name):
        where = f"offsets table, sequence {key[0]} {shown(key[1:])}"
        expected, again = ranges.take(key)
        if again:
            findings.add(Kind.OFFSETS_TABLE, f"{where}: more than one row")
        elif expected is not None:
            facts = _facts(*expected, name)
            counts = _counts(*expected, subject) if subject is not None else {}
            wrong = _differences({**facts, **counts}, found)
            if wrong:
                findings.add(Kind.OFFSETS_TABLE, f"{where}: {wrong}")
        elif _is_unknown(key, found, first, ledger):
            findings.add(Kind.OFFSETS_TABLE, f"{where}: no such range in the ledger")
        elif found["table_version"] > ledger.version and not log.has(found["table_version"]):
            lost.add(found["table_version"])
    for version in sorted(lost):
        line = f"the offsets table has a row of version {version}, the table's log does not have it"
        findings.add(Kind.FAULT, line)
    for sequence, partition in ranges.left():
        where = f"offsets table, sequence {sequence} {shown(partition)}"
        findings.add(Kind.OFFSETS_TABLE, f"{where}: no row")


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

    def left(self) -> Iterator[tuple[int, Partition]]:
        """Sequence and partition of every range that was not taken."""
        for sequence, (_, places, taken) in self._entries.items():
            for partition, place in places.items():
                if not taken[place]:
                    yield sequence, partition


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
    first, last = np.searchsorted(span.starts, [each.start, each.start + 1]).tolist()
    same = [at for at in range(first, last) if span.untils[at] == each.until]
    if each.partition in subject.coverage.former:  # the range may be one of former records
        of_entries = [subject.ledger.effective[span.entries[at]].version for at in same]
        same = same if entry.version in of_entries else []
    if not same or not subject.countable(each.partition, span, same[0]):
        return {}
    visible, quarantined = int(span.visible[same[0]]), int(span.quarantined[same[0]])
    return {
        "records": visible,
        "applied": visible - quarantined,
        "quarantined": quarantined,
    }


def _rows(tables: Tables, pipeline: str) -> Iterator[tuple[RowKey, Facts]]:
    if not tables.exist(OFFSETS_TABLE):
        return
    columns = [*_KEYS, *_RANGE, *_SOURCE, *_COUNTS]
    for batch in tables.rows(OFFSETS_TABLE).batches(columns, f"pipeline = '{pipeline}'"):
        for row in batch.to_pylist():
            yield (row["sequence"], row["topic"], row["partition"]), row
