"""Totals of the records of a task, made where they are decoded: what they add to each key.

So a row for each key goes back to Spark, and not one for each record. Runs in Spark's Python
workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.collector import spare_what_is_loaded
from rivermouth.formats.decoded import PARTITION
from rivermouth.formats.in_arrow import REFUSAL
from rivermouth.formats.sieve import OpenSieve, Sieve, opened, without_key

LOW_BITS = 32
_RECORDS = 1 << 18
_BYTES = 1 << 26
"""So much is kept before it is folded: a task may have any number of records."""
_ROWS = 10_000


@dataclass(frozen=True)
class Part:
    """A part of the key, as ``config.totals.KeyPart``."""

    name: str
    column: str
    width_us: int | None


@dataclass(frozen=True)
class Metric:
    """What is measured, as ``config.totals.Measure``: a count, a sum, or an extreme (min, max)."""

    function: str
    column: str | None


@dataclass(frozen=True)
class TotalsInTask:
    """A function for ``DataFrame.mapInArrow``: from Kafka's rows to one for each key.

    ``decode`` makes decoded rows of Kafka's, as ``formats.in_task``. A row that comes back has
    ``_kafka`` STRUCT<topic, partition>, ``records``, of how many it is made, ``key_columns``, a
    STRUCT of the ``keys``, and a column for each part of each of the ``metrics``, see ``parts_of``.
    A key may come several times. A bad record, or one without a key, fails the task by ``REFUSAL``,
    or is given to the ``sieve``, which asks for all of Kafka's columns.
    """

    decode: Callable[[pa.RecordBatch], pa.RecordBatch]
    keys: tuple[Part, ...]
    metrics: tuple[Metric, ...]
    sieve: Sieve | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        records = size = 0
        with opened(self.sieve) as sieve:
            for batch in batches:
                waiting.append(self._measured(batch, sieve))
                records, size = records + len(waiting[-1]), size + waiting[-1].nbytes
                if records >= _RECORDS or size >= _BYTES:
                    yield from self._folded(waiting)
                    waiting, records, size = [], 0, 0
            if waiting:
                yield from self._folded(waiting)
        spare_what_is_loaded()

    def _measured(self, raw: pa.RecordBatch, sieve: OpenSieve | None) -> pa.RecordBatch:
        """What is grouped of each good record, and by what."""
        decoded = self.decode(raw)
        code, row, kafka = (decoded.column(each) for each in ("code", "row", "_kafka"))
        keys = [_key(row.field(each.column), each.width_us) for each in self.keys]
        if code.null_count < len(code) or any(each.null_count for each in keys):
            if sieve is None:
                raise RuntimeError(REFUSAL)
            for each in keys:
                code = without_key(code, each, row.is_valid())
        if sieve is not None:
            good = sieve.good(raw, code, decoded.column("reason"))
            if good is not None:
                code, row, kafka = (each.filter(good) for each in (code, row, kafka))
                keys = [each.filter(good) for each in keys]
        # Copied: Kafka's columns share the memory of all values of their batch.
        every = pa.array(np.arange(len(code)))
        columns = {each: kafka.field(each).take(every) for each in PARTITION}
        columns |= {f"key_{n}": each for n, each in enumerate(keys)}
        for number, metric in enumerate(self.metrics):
            if metric.column is not None:
                columns |= _inputs(number, metric.function, row.field(metric.column))
        return pa.RecordBatch.from_pydict(columns)

    def _folded(self, waiting: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by = [*PARTITION, *(f"key_{number}" for number in range(len(self.keys)))]
        table = pa.Table.from_batches(waiting)
        parts = [(name, _how(name)) for name in table.column_names if name not in by]
        # All rows are counted without a column: in each of them one may be null.
        found = table.group_by(by, use_threads=False).aggregate([([], "count_all"), *parts])
        for batch in found.combine_chunks().to_batches(max_chunksize=_ROWS):
            yield self._returned(batch, parts)

    def _returned(self, found: pa.RecordBatch, parts: Sequence[tuple[str, str]]) -> pa.RecordBatch:
        place = [found.column(each) for each in PARTITION]
        keys = [found.column(f"key_{number}") for number in range(len(self.keys))]
        columns = {
            "_kafka": pa.StructArray.from_arrays(place, PARTITION),
            "records": found.column("count_all"),
            "key_columns": pa.StructArray.from_arrays(keys, [each.name for each in self.keys]),
            **{name: found.column(f"{name}_{how}") for name, how in parts},
        }
        return pa.RecordBatch.from_pydict(columns)


def parts_of(number: int, metric: Metric, *, integral: bool) -> tuple[str, ...]:
    """The columns that come back of the metric with this number.

    A sum of whole numbers comes in two, of the bits above ``LOW_BITS`` and of those below: each of
    these fits into 64 bits, whatever the order. A count of all records is ``records``.
    """
    if metric.column is None:
        return ()
    if metric.function == "sum" and integral:
        return (f"high_{number}", f"low_{number}")
    return (f"{metric.function}_{number}",)


def _inputs(number: int, function: str, column: pa.Array) -> dict[str, pa.Array]:
    """What is aggregated of a column, by the names of ``parts_of``."""
    if function != "sum":
        return {f"{function}_{number}": column}
    if pa.types.is_decimal(column.type):
        # Sums need more digits than the column has; Arrow before 20 keeps their number.
        return {f"sum_{number}": column.cast(pa.decimal128(38, column.type.scale))}
    whole = column.cast(pa.int64())
    high = pc.shift_right(whole, pa.scalar(LOW_BITS, pa.int64()))
    low = pc.bit_wise_and(whole, pa.scalar((1 << LOW_BITS) - 1, pa.int64()))
    return {f"high_{number}": high, f"low_{number}": low}


def _how(part: str) -> str:
    """The aggregate that makes a part, by its name."""
    kind = part.partition("_")[0]
    return "sum" if kind in ("high", "low") else kind


def _key(column: pa.Array, width_us: int | None) -> pa.Array:
    """A part of the key; null where the column is, and where a window begins before all times."""
    if width_us is None:
        return column
    us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    begins = us - np.mod(us, width_us)  # of the sign of the divisor: 0 or more
    none = (begins > us) | column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(begins, mask=none).cast(column.type)
