"""The rows of data files, as columns of digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.faults.checker.data_files import DataFile
from tests.faults.checker.digest import Digests, Integers, of_column, of_places, of_rows, sum_of
from tests.faults.checker.evidence import TYPES, Place, Watched


@dataclass(frozen=True)
class Rows:
    """Rows that come from one partition: where from, what they say, and which key they have."""

    place: Place
    offsets: Integers
    digests: Digests
    keys: Digests


def read_rows(files: Iterable[DataFile], watched: Watched) -> Iterator[Rows]:
    """The rows of data files. Raises OSError or pa.ArrowException for one that cannot be read."""
    columns = ["_kafka", *(name for name, _ in watched.columns)]
    for file in files:
        for batch in file.batches(watched.table, columns):
            yield from _rows(batch, watched)


def _rows(batch: Any, watched: Watched) -> Iterator[Rows]:
    columns = {}
    for name, kind in watched.columns:
        there = name in batch.schema.names
        columns[name] = of_column(
            batch.column(name) if there else pa.nulls(len(batch), TYPES[kind])
        )
    kafka = batch.column("_kafka")
    topics = pc.fill_null(pc.struct_field(kafka, "topic"), "").dictionary_encode()
    partitions = pc.fill_null(pc.struct_field(kafka, "partition"), -1).to_numpy()
    offsets = pc.fill_null(pc.struct_field(kafka, "offset"), -1).to_numpy()
    stamps = of_column(pc.struct_field(kafka, "timestamp"))
    codes = topics.indices.to_numpy()
    for code, topic in enumerate(topics.dictionary.to_pylist()):
        for partition in np.unique(partitions[codes == code]).tolist():
            here = (codes == code) & (partitions == partition)
            place = (topic, int(partition))
            values = [each[here] for each in columns.values()]
            places = of_places(*place, offsets[here])
            keys = [columns[name][here] for name in watched.keys]
            yield Rows(
                place,
                offsets[here],
                of_rows([*values, stamps[here], *places]),
                of_rows(keys) if keys else np.zeros(int(here.sum()), np.uint64),
            )


class FileSums:
    """How many rows a set of data files has, and the sum of their digests.

    Each file is read once for each of its deletion vectors: it never changes.
    """

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._known: dict[DataFile, tuple[int, int]] = {}

    def of(self, files: Iterable[DataFile]) -> tuple[int, int]:
        """Rows and sum, modulo 2**64, of all files together."""
        count = total = 0
        for file in files:
            if file not in self._known:
                self._known[file] = self._read(file)
            count += self._known[file][0]
            total += self._known[file][1]
        return count, total % (1 << 64)

    def _read(self, file: DataFile) -> tuple[int, int]:
        count = total = 0
        for rows in read_rows([file], self._watched):
            count += len(rows.offsets)
            total += sum_of(rows.digests)
        return count, total
