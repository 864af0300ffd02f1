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
    expected = dict(_expected(ledger, str(pipeline.target.table)))
    if subject is not None:
        expected = {
            key: {**facts, **_counts(key, facts, subject)} for key, facts in expected.items()
        }
    first = ledger.recorded[0].sequence if ledger.recorded else 1
    seen: set[RowKey] = set()
    lost: set[int] = set()
    for key, found in _rows(tables, pipeline.name):
        where = f"offsets table, sequence {key[0]} {shown(key[1:])}"
        if key in seen:
            findings.add(Kind.OFFSETS_TABLE, f"{where}: more than one row")
        elif key in expected:
            wrong = _differences(expected[key], found)
            if wrong:
                findings.add(Kind.OFFSETS_TABLE, f"{where}: {wrong}")
        elif _is_unknown(key, found, first, ledger):
            findings.add(Kind.OFFSETS_TABLE, f"{where}: no such range in the ledger")
        elif found["table_version"] > ledger.version and not log.has(found["table_version"]):
            lost.add(found["table_version"])
        seen.add(key)
    for version in sorted(lost):
        line = f"the offsets table has a row of version {version}, the table's log does not have it"
        findings.add(Kind.FAULT, line)
    for key in expected:
        if key not in seen:
            where = f"offsets table, sequence {key[0]} {shown(key[1:])}"
            findings.add(Kind.OFFSETS_TABLE, f"{where}: no row")


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


def _expected(ledger: Ledger, table_name: str) -> Iterator[tuple[RowKey, dict[str, Any]]]:
    for entry in ledger.recorded:
        for each in entry.ranges:
            yield (entry.sequence, *each.partition), _facts(entry, each, table_name)


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


def _counts(key: RowKey, facts: Facts, subject: Subject) -> dict[str, int]:
    """The counts of a range as Kafka and the quarantine show them; empty where unknown."""
    start, until = facts["from_offset"], facts["until_offset"]
    partition: Partition = (key[1], key[2])
    if start == until:
        return dict.fromkeys(_COUNTS, 0)
    span = subject.coverage.spans.get(partition)
    if span is None:
        return {}
    same = np.flatnonzero((span.starts == start) & (span.untils == until))
    if not len(same) or not subject.countable(partition, span, int(same[0])):
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
