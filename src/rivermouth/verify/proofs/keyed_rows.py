"""The rows of a table with keys, as the check of keys takes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.verify.proofs.rule import Key, Row
from rivermouth.verify.result import Kind, count
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.batches import coordinates, field, tuples
from rivermouth.verify.tables.ports import Rows

_SOFT_DELETE = "_tombstone"
"""Where no MERGE can delete, a deleted row has a value here until a later statement removes it."""
_PLACES = 1 << 24


class Touched:
    """The keys of the records that were read, by their hashes: 16 MiB for any number of them.

    A key that was not added may be in it; one that was added always is.
    """

    def __init__(self) -> None:
        self._places = bytearray(_PLACES)

    def add(self, key: Hashable) -> None:
        """Note a key."""
        self._places[hash(key) % _PLACES] = 1

    def __contains__(self, key: Hashable) -> bool:
        return self._places[hash(key) % _PLACES] == 1


def table_rows(
    subject: Subject, table: Rows, columns: Sequence[str], touched: Touched
) -> Iterator[tuple[Key, Row]]:
    """The rows of a table with their keys; a row without coordinates is a finding.

    Where the verification begins after an entry, only rows of touched keys and rows from after that
    entry. Of the others only the key columns are looked at.
    """
    keys = list(subject.pipeline.target.keys)
    unknown = 0
    deleted = f"{_SOFT_DELETE} IS NULL" if _SOFT_DELETE in table.schema.names else None
    for batch in table.batches([*columns, "_kafka"], deleted):
        if subject.ledger.since is not None:
            batch = batch.take(pa.array(_verified(subject, batch, keys, touched)))
        names = ("topic", "partition", "offset", "timestamp")
        facts = zip(*(field(batch, "_kafka", name).to_pylist() for name in names), strict=True)
        told = subject.metadata.of_rows(batch)
        found = zip(tuples(batch, keys), tuples(batch, columns), facts, told, strict=True)
        for key, values, (topic, partition, offset, stamp), more in found:
            if topic is None or partition is None or offset is None:
                unknown += 1
            else:
                yield key, Row((topic, partition), offset, values, stamp, more)
    if unknown:
        line = f"{count(unknown, 'row')} without Kafka coordinates"
        subject.findings.add(Kind.UNEXPECTED, line, count=unknown)


def _verified(
    subject: Subject, batch: pa.RecordBatch, keys: Sequence[str], touched: Touched
) -> NDArray[np.intp]:
    """Which rows of a batch are wanted."""
    wanted = np.array([key in touched for key in tuples(batch, keys)], bool)
    found, _ = coordinates(*(field(batch, "_kafka", name) for name in _COORDINATES))
    known = np.zeros(batch.num_rows, bool)
    for each in found:
        known[each.rows] = True
        wanted[each.rows] |= each.offsets >= subject.begins(each.partition)
    return np.flatnonzero(wanted | ~known)


_COORDINATES = ("topic", "partition", "offset")
