"""What a task does with its part of a batch: good rows into the table's files, bad ones apart.

It gets decoded rows (``formats.decoded``) as Arrow batches and returns one row for each file that
it wrote. Nobody sees a file before a commit names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rivermouth.formats.collector import spare_what_is_loaded
from rivermouth.write.files.apart import Apart, set_apart, task_number
from rivermouth.write.files.file import DataFile, Files, Folder, bad, good

RETURNED = pa.schema(
    [
        ("bad", pa.bool_()),
        ("name", pa.string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("statistics", pa.string()),
        ("records", pa.string()),
    ]
)
"""A row for each file, see ``DataFile.as_row``."""
RETURNED_DDL = (
    "bad BOOLEAN, name STRING, size BIGINT, modified_ms BIGINT, statistics STRING, records STRING"
)

Batches = Iterable[pa.RecordBatch]
Decode = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Written:
    """What the tasks of a batch wrote: files of good rows, and of bad ones."""

    good: tuple[DataFile, ...]
    bad: tuple[DataFile, ...]

    def there(self, folder: str) -> bool:
        """Whether the good rows' files are in the folder, whole."""
        return all(each.is_whole(Path(folder)) for each in self.good)


def task(
    folder: Folder, apart: Apart, decode: Decode | None = None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What ``mapInArrow`` is to call: it writes into ``folder``, and bad records ``apart``.

    The rows are decoded, or ``decode`` does that.
    """

    def written(batches: Batches) -> Iterator[pa.RecordBatch]:
        number = task_number()
        rows, quarantine = Files(folder, number), Files(apart.folder, number)
        try:
            for batch in map(decode, batches) if decode else batches:
                yield from _returned(rows.add(*_of_table(good(batch))), bad=False)
                yield from _returned(set_apart(quarantine, bad(batch), apart), bad=True)
            yield from _returned(rows.end(), bad=False)
            yield from _returned(quarantine.end(), bad=True)
        except BaseException:
            rows.discard()
            quarantine.discard()
            raise
        spare_what_is_loaded()

    return written


def collected(rows: Iterable[Mapping[str, object]]) -> Written:
    """What the rows say that the tasks of a batch returned."""
    found: dict[bool, list[DataFile]] = {True: [], False: []}
    for each in rows:
        found[bool(each["bad"])].append(DataFile.of(each))
    return Written(tuple(found[False]), tuple(found[True]))


def _returned(files: Iterable[DataFile], *, bad: bool) -> Iterator[pa.RecordBatch]:
    for each in files:
        yield pa.RecordBatch.from_pylist([{"bad": bad, **each.as_row()}], RETURNED)


def _of_table(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.StructArray]:
    """The configured columns and ``_kafka``, as the table has them."""
    kafka = rows.column("_kafka")
    row = rows.column("row")
    arrays = [*row.flatten(), kafka]
    fields = [*row.type, pa.field("_kafka", kafka.type)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), kafka
