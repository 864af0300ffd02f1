"""The offsets table against the ledger: every entry's ranges, once, as the log says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rivermouth.config import OFFSETS_TABLE, Pipeline
from rivermouth.verify.ledger.commits import Commits
from rivermouth.verify.ledger.coverage import Coverage
from rivermouth.verify.ledger.entry import LedgerEntry, LedgerRange, Place, shown
from rivermouth.verify.ledger.log import Ledger
from rivermouth.verify.result import Findings, Kind
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.folder import Tables

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
    """Compare the offsets table row by row with the entries in the ``log``.

    ``records``, ``applied`` and ``quarantined`` are compared where the whole range could be
    counted again (``subject``; None where Kafka could not be read).
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
            findings.add(Kind.OFFSETS_TABLE, f"{where}: more than once")
        elif key in expected:
            wrong = [name for name, value in expected[key].items() if found[name] != value]
            if wrong:
                findings.add(Kind.OFFSETS_TABLE, f"{where}: differs in {', '.join(wrong)}")
        elif _is_foreign(key, found, first, ledger):
            findings.add(Kind.OFFSETS_TABLE, f"{where}: no such range in the ledger")
        elif found["table_version"] > ledger.version:
            lost |= _lost(log, found["table_version"])
        seen.add(key)
    for version in sorted(lost):
        line = f"the offsets table knows version {version}, which the table's log does not have"
        findings.add(Kind.FAULT, line)
    for key in expected:
        if key not in seen:
            where = f"offsets table, sequence {key[0]} {shown(key[1:])}"
            findings.add(Kind.OFFSETS_TABLE, f"{where}: no row")


def _is_foreign(key: RowKey, found: Facts, first: int, ledger: Ledger) -> bool:
    """Whether a row that no entry explains is wrong: not older, not newer than what was read."""
    anew = bool(ledger.recorded) and ledger.recorded[0].accepts == "reset"
    older = (ledger.trimmed or anew) and key[0] < first
    return not older and not found["table_version"] > ledger.version


def _lost(log: Commits, version: int) -> set[int]:
    """The version of an entry that came after the log was read, unless it is there by now."""
    return set() if log.has(version) else {version}


def _expected(ledger: Ledger, table_name: str) -> Iterator[tuple[RowKey, dict[str, Any]]]:
    for entry in ledger.recorded:
        for each in entry.ranges:
            yield (entry.sequence, *each.place), _facts(entry, each, table_name)


def _facts(entry: LedgerEntry, each: LedgerRange, table_name: str) -> dict[str, Any]:
    return {
        "from_offset": each.start,
        "until_offset": each.until,
        "end_offset": entry.ends.get(each.place),
        "commit": entry.commit,
        "table_version": entry.version,
        "table_name": table_name,
        "topic_id": entry.topics.get(each.place[0]),
        "cluster_id": entry.cluster,
    }


def _counts(key: RowKey, facts: Facts, subject: Subject) -> dict[str, int]:
    """The counts of a range as Kafka and the quarantine show them; empty where unknown."""
    start, until = facts["from_offset"], facts["until_offset"]
    place: Place = (key[1], key[2])
    if start == until:
        return dict.fromkeys(_COUNTS, 0)
    span = subject.coverage.spans.get(place)
    index = _index(subject.coverage, place, start, until)
    if span is None or index is None or not subject.whole(place, span, index):
        return {}
    visible, quarantined = int(span.visible[index]), int(span.quarantined[index])
    return {
        "records": visible,
        "applied": visible - quarantined,
        "quarantined": quarantined,
    }


def _index(coverage: Coverage, place: Place, start: int, until: int) -> int | None:
    span = coverage.spans.get(place)
    if span is None:
        return None
    for index in ((span.starts == start) & (span.untils == until)).nonzero()[0].tolist():
        return int(index)
    return None


def _rows(tables: Tables, pipeline: str) -> Iterator[tuple[RowKey, Facts]]:
    if not tables.exist(OFFSETS_TABLE):
        return
    columns = [*_KEYS, *_RANGE, *_SOURCE, *_COUNTS]
    for batch in tables.rows(OFFSETS_TABLE).batches(columns, f"pipeline = '{pipeline}'"):
        for row in batch.to_pylist():
            yield (row["sequence"], row["topic"], row["partition"]), row
