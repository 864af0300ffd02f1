"""Arrow batches of a task, joined to larger ones.

To begin with a batch costs as much as some thousand of its records, and from Spark larger ones are
not cheaper (``write.arrow_batches``). Imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

_RECORDS = 20_000
_BYTES = 16 << 20


@dataclass(frozen=True)
class Joined:
    """A function for ``DataFrame.mapInArrow``: ``task`` gets the batches joined."""

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(joined(batches))


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows in their order. What is joined has at most so many records and bytes together; a
    batch that has more stays as it is.
    """
    held: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        records, size = records + len(batch), size + batch.nbytes
        if held and (records > _RECORDS or size > _BYTES):
            yield _as_one(held)
            held, records, size = [], len(batch), batch.nbytes
        held.append(batch)
    if held:
        yield _as_one(held)


def _as_one(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(held) == 1:
        return held[0]
    columns = pa.Table.from_batches(held).combine_chunks().columns
    # Without rows a column has no chunk.
    arrays = [each.chunk(0) if each.num_chunks else pa.array([], each.type) for each in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=held[0].schema)
