"""The quarantine rows that count: those of effective entries. Crashes may leave others.

In memory they are two numbers per row: the offset, and a hash of the raw key and value; a third one
where the reason is that a total would not fit, see ``total_check``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.config import TableName
from rivermouth.verification.ledger.coverage import Coverage, Flags, Offsets
from rivermouth.verification.ledger.entry import Partition, shown
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.proofs.rows_by_offset import beginning
from rivermouth.verification.result import Findings, Kind, Unchecked
from rivermouth.verification.tables.ports import Tables, coordinates

_COLUMNS = ("commit", "topic", "partition", "offset", "key", "value")
_TOO_LARGE = "RM606"


class Quarantined:
    """The effective quarantine rows of one partition by offset, and which were seen in Kafka.

    ``large``: which of them are good records whose totals would not fit; None: no one is.
    """

    def __init__(
        self, offsets: Offsets, hashes: NDArray[np.int64], large: Flags | None = None
    ) -> None:
        order = np.argsort(offsets, kind="stable")
        self.offsets = offsets[order]
        self._hashes = hashes[order]
        self._large = offsets[:0] if large is None else self.offsets[large[order]]
        self._seen = np.zeros(len(order), bool)

    def mask(self, offsets: Offsets) -> Flags:
        """Which of ``offsets`` (ascending) are in quarantine."""
        return np.isin(offsets, self.offsets)

    def too_large(self, offsets: Offsets) -> Flags:
        """Which of ``offsets`` (ascending) are in quarantine because a total would not fit."""
        return np.isin(offsets, self._large)

    def same(self, message: Message) -> bool:
        """Whether quarantine holds the raw key and value of a record, which is noted as seen."""
        offset = int(message.offset() or 0)
        first, last = np.searchsorted(self.offsets, [offset, offset + 1])
        self._seen[first:last] = True
        return bool(np.all(self._hashes[first:last] == _hash(message.key(), message.value())))

    def within(self, start: int, until: int) -> Offsets:
        """The quarantined offsets in ``[start, until)``."""
        first, last = np.searchsorted(self.offsets, [start, until])
        return self.offsets[first:last]

    def unseen(self, start: int, until: int) -> Offsets:
        """The quarantined offsets in ``[start, until)`` that no visible record has."""
        first, last = np.searchsorted(self.offsets, [start, until])
        return self.offsets[first:last][~self._seen[first:last]]


NO_RECORDS = Quarantined(np.zeros(0, np.int64), np.zeros(0, np.int64))


def read_quarantine(
    tables: Tables,
    table: TableName,
    ledger: Ledger,
    coverage: Coverage,
    findings: Findings,
) -> Mapping[Partition, Quarantined]:
    """The effective quarantine rows by partition; counts them per range.

    A row outside the ranges of its own entry is a finding, and so is a second row of an offset.
    Raises Unreadable.
    """
    if not tables.exist(table):
        return {}
    first = len(ledger.effective) - len(ledger.covered)
    by_commit = {each.commit: number for number, each in enumerate(ledger.covered, first)}
    commits = pa.array([*by_commit], pa.string())
    parts: dict[Partition, list[tuple[Offsets, NDArray[np.int64], Flags]]] = {}
    former = 0
    begins = beginning(ledger, "offset")
    rows_of = tables.rows(table)
    coded = [name for name in ("code",) if name in rows_of.schema.names]
    for batch in rows_of.batches([*_COLUMNS, *coded], begins):
        ours = batch.filter(pc.is_in(batch.column("commit"), commits))
        found, _ = coordinates(ours)
        keys, values = ours.column("key").to_pylist(), ours.column("value").to_pylist()
        hashes = np.array([_hash(*each) for each in zip(keys, values, strict=True)], np.int64)
        large = _too_large(ours) if coded else np.zeros(ours.num_rows, bool)
        tags = np.array([by_commit[each] for each in ours.column("commit").to_pylist()], np.int64)
        for each in found:
            now = _count(each.partition, each.offsets, tags[each.rows], coverage, findings)
            former += int((~now).sum())
            piece = (each.offsets[now], hashes[each.rows][now], large[each.rows][now])
            parts.setdefault(each.partition, []).append(piece)
    line = f"{former:,} in quarantine: from before an accepted change of the source"
    findings.leave(Unchecked.FORMER, line, former)
    rows = {
        partition: Quarantined(
            np.concatenate([each[0] for each in pieces]),
            np.concatenate([each[1] for each in pieces]),
            np.concatenate([each[2] for each in pieces]),
        )
        for partition, pieces in parts.items()
    }
    for partition, its in rows.items():
        again = its.offsets[1:][its.offsets[1:] == its.offsets[:-1]]
        what = "in quarantine more than once"
        findings.add_offsets(Kind.DUPLICATED, shown(partition), np.unique(again), what, len(again))
    findings.quarantined = sum(len(its.offsets) for its in rows.values())
    return rows


def _count(
    partition: Partition, offsets: Offsets, tags: Offsets, coverage: Coverage, findings: Findings
) -> Flags:
    """Count the rows of a partition per range. Which of them are not of former records."""
    former = coverage.former.of_entries(partition, offsets, tags)
    offsets, tags = offsets[~former], tags[~former]
    span = coverage.spans.get(partition)
    index = span.index(offsets) if span else np.full(len(offsets), -1)
    inside = index >= 0
    if span is not None:
        np.add.at(span.quarantined, index[inside], 1)
        inside[inside] = span.entries[index[inside]] == tags[inside]
    what = "in quarantine, but the entry of its commit does not cover it"
    findings.add_offsets(Kind.UNEXPECTED, shown(partition), offsets[~inside], what)
    return ~former


def _too_large(rows: pa.RecordBatch) -> Flags:
    found = pc.fill_null(pc.equal(rows.column("code"), _TOO_LARGE), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _hash(key: object, value: object) -> int:
    return hash((key, value))
