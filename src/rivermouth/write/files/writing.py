"""What a task does with its records: decodes them, writes them as files, and tells of that.

Rows by key are folded first, as many records at once as fit into memory: of each key of each
partition of Kafka one row is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rivermouth.formats.arrow import spare_what_is_loaded
from rivermouth.storage.store import Store
from rivermouth.write.files.bad_records import (
    QuarantineOutput,
    QuarantineTarget,
    task_number,
    write_quarantined,
)
from rivermouth.write.files.counting import Counted, bad, good
from rivermouth.write.files.data_files import NOTHING_PLACED, DataFile, Files, Folder
from rivermouth.write.keys.entries import Reduction

if TYPE_CHECKING:  # tasks need nothing of it
    from pyspark.sql import DataFrame

RETURNED = pa.schema(
    [("file", pa.string()), ("bad", pa.bool_()), ("counted", pa.string()), ("entries", pa.binary())]
)
"""A row for each file (``DataFile.to_json``), for what was counted (``Counted.to_json``), and for
the entries of what was folded at once (``keys.entries.to_bytes``).
"""
RETURNED_DDL = "file STRING, bad BOOLEAN, counted STRING, entries BINARY"
_RECORDS, _BYTES = 1 << 18, 1 << 26
"""So much is kept before it is folded: a task may have any number of records."""

Batches = Iterable[pa.RecordBatch]
Decode = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Written:
    """What the tasks of a batch wrote: files of good rows and of bad ones; what they counted; and
    the entries of rows by key.
    """

    good: tuple[DataFile, ...]
    bad: tuple[DataFile, ...]
    counted: Counted
    entries: tuple[bytes, ...]

    def there(self, table: Store, quarantine: Store) -> bool:
        """Whether its files are in these stores, whole. Raises ``STORE_FAULTS``."""
        pairs = [(table, each) for each in self.good] + [(quarantine, each) for each in self.bad]
        return all(each.is_whole(store) for store, each in pairs)


@dataclass(frozen=True)
class Writing:
    """What ``mapInArrow`` is to call: it writes into ``folder``, and bad records into ``target``.

    The rows are decoded, or ``decode`` does that. ``reduction``: they are rows by key.
    """

    folder: Folder
    target: QuarantineTarget
    decode: Decode | None = None
    reduction: Reduction | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Write all rows; give back ``RETURNED``."""
        number = task_number()
        rows, quarantine = Files(self.folder, number), Files(self.target.folder, number)
        counts, kept = Counted(), _Kept()
        try:
            for decoded in map(self.decode, batches) if self.decode else batches:
                counts.add(decoded.column("_kafka"), decoded.column("code"))
                if self.reduction is None:
                    yield from _files(rows.add(_of_table(good(decoded))), bad=False)
                elif kept.full_with(_of_keys(good(decoded))):
                    yield from self._reduced(kept.taken(), rows)
                yield from _files(
                    write_quarantined(quarantine, bad(decoded), self.target), bad=True
                )
            if self.reduction is not None:
                yield from self._reduced(kept.taken(), rows)
            yield from _files(rows.end(), bad=False)
            yield from _files(quarantine.end(), bad=True)
        except BaseException:
            rows.discard()
            quarantine.discard()
            raise
        if counts:
            yield _returned(counted=counts.to_json())
        spare_what_is_loaded()

    def _reduced(self, kept: list[pa.RecordBatch], files: Files) -> Iterator[pa.RecordBatch]:
        if not kept or self.reduction is None:
            return
        found = self.reduction.reduced(pa.Table.from_batches(kept).combine_chunks())
        placed = NOTHING_PLACED
        for batch in found.rows.combine_chunks().to_batches():  # one, or none
            placed, done = files.placed(_of_table(batch))
            yield from _files(done, bad=False)
        yield _returned(entries=found.told(placed))


@dataclass
class _Kept:
    """Records by key that wait to be folded."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    records: int = 0
    size: int = 0

    def full_with(self, batch: pa.RecordBatch) -> bool:
        """Keep these, too; whether it is time to fold."""
        if batch.num_rows:
            self.batches.append(batch)
            self.records, self.size = self.records + batch.num_rows, self.size + batch.nbytes
        return self.records >= _RECORDS or self.size >= _BYTES

    def taken(self) -> list[pa.RecordBatch]:
        """All that is kept; nothing is from then on."""
        taken, self.batches = self.batches, []
        self.records = self.size = 0
        return taken


@dataclass(frozen=True)
class Sieve:
    """What ``mapInArrow`` is to call before own code: it gives the good rows, as they were decoded.

    All records are counted by ``output``, and the bad ones diverted.
    """

    output: QuarantineOutput
    decode: Decode

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Take all rows; give back ``row``, ``_kafka`` and ``code`` of the good ones."""
        with self.output.opened() as task:
            for decoded in map(self.decode, batches):
                task.take(decoded)
                yield good(decoded).select(["row", "_kafka", "code"])
        spare_what_is_loaded()


def filled(
    folder: Folder,
    batches: Batches,
    add: Callable[[Files, pa.RecordBatch], Iterable[DataFile]],
    *,
    bad: bool,
) -> Iterator[pa.RecordBatch]:
    """For one task: give all rows to ``add``, which completes files of ``folder``; ``RETURNED``."""
    files = Files(folder, task_number())
    try:
        for rows in batches:
            yield from _files(add(files, rows), bad=bad)
        yield from _files(files.end(), bad=bad)
    except BaseException:
        files.discard()
        raise


Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What one task does with its rows; it returns ``RETURNED``."""


def carried_out(rows: DataFrame, task: Task) -> Written:
    """What the tasks tell that give their rows to ``task``, which returns ``RETURNED``."""
    returned = rows.mapInArrow(task, RETURNED_DDL).collect()
    return collected(each.asDict() for each in returned)


def collected(rows: Iterable[Mapping[str, object]]) -> Written:
    """What the rows say that the tasks of a batch returned."""
    found: dict[bool, list[DataFile]] = {True: [], False: []}
    counts, entries = Counted(), list[bytes]()
    for each in rows:
        if each["file"] is not None:
            found[bool(each["bad"])].append(DataFile.from_json(str(each["file"])))
        elif each["counted"] is not None:
            counts.update(Counted.from_json(str(each["counted"])))
        elif isinstance(each["entries"], (bytes, bytearray)):
            entries.append(bytes(each["entries"]))
    return Written(tuple(found[False]), tuple(found[True]), counts, tuple(entries))


def _files(files: Iterable[DataFile], *, bad: bool) -> Iterator[pa.RecordBatch]:
    for each in files:
        yield _returned(file=each.to_json(), bad=bad)


def _returned(**told: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([told], RETURNED)


def _of_table(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The configured columns and ``_kafka``, as the table has them."""
    kafka, row = rows.column("_kafka"), rows.column("row")
    arrays = [*row.flatten(), kafka]
    fields = [*row.type, pa.field("_kafka", kafka.type)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _of_keys(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What is folded. Kafka's columns are copied: they share the memory of all values of their
    batch.
    """
    kafka = rows.column("_kafka").take(pa.array(np.arange(len(rows))))
    known = ("row", "key_columns", "tombstone", "kept")
    columns = {each: rows.column(each) for each in known if each in rows.schema.names}
    return pa.RecordBatch.from_pydict({**columns, "_kafka": kafka})
