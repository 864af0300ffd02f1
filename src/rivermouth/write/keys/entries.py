"""What tasks tell the driver of the rows by key that they wrote: entries, as Arrow bytes.

A task folds the records that it holds at once, writes the row that is left of each key of each
partition of Kafka, and tells where it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa

from rivermouth.write.files.data_files import Placed
from rivermouth.write.keys.runs import Words, digests
from rivermouth.write.keys.settle import (
    NONE,
    Changes,
    Folded,
    Integers,
    Mask,
    compared,
    earliest,
    latest,
)
from rivermouth.write.keys.untold import untold

_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Rows and offsets follow each other: of 46 bytes an entry some 12 are left to carry."""
_FILES = b"files"
_NUMBERS = ("file", "row", "partition", "offset", "tombstone")
_GONE, _KEPT = "gone", "kept"
_PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True)
class Reduced:
    """What a task makes of records that it holds at once: ``rows`` to be written, with ``row`` and
    ``_kafka``, and ``told``, what the driver is told of them, given where they are.
    """

    rows: pa.Table
    told: Callable[[Placed], bytes]


class Reduction(Protocol):
    """What a task does with rows by key before they are written. It can be pickled."""

    def reduced(self, decoded: pa.Table) -> Reduced:
        """Reduce good decoded rows, see ``formats.tasks``: their ``row``, ``_kafka``,
        ``key_columns`` and ``tombstone``.
        """


@dataclass(frozen=True)
class Fold:
    """How a task folds its records: the newest row of each key by ``order_by``, or the first."""

    first: bool = False
    order_by: tuple[str, ...] = ()

    def __call__(self, changes: Changes, *, apart: bool = False) -> Folded:
        """See ``settle.latest`` and ``settle.earliest``."""
        fold = earliest if self.first else latest
        return fold(changes, apart=apart)

    def reduced(self, decoded: pa.Table) -> Reduced:
        """See ``Reduction``."""
        left = left_of(decoded, self)
        rows = decoded.select(["row", "_kafka"])
        if len(left.rows) < len(rows):
            rows = rows.take(pa.array(left.rows))
        return Reduced(rows, partial(to_bytes, left))


@dataclass(frozen=True)
class Left:
    """What is left of some records: which of them become rows, in this order, and an entry for each
    key of each partition, and for what decides about values that its row does not tell.
    ``changes.row`` is the number of its row among these; a deletion has none.
    """

    rows: Integers
    changes: Changes
    topics: tuple[str, ...]


def left_of(decoded: pa.Table, fold: Fold) -> Left:
    """Fold good decoded rows, see ``formats.tasks``."""
    columns = decoded.combine_chunks()
    kafka, row = columns.column("_kafka").chunk(0), columns.column("row").chunk(0)
    topics, topic = _ranked(kafka.field("topic"))
    keys = columns.column("key_columns").chunk(0)
    offset = kafka.field("offset").to_numpy()
    deletes = columns.column("tombstone").chunk(0).to_numpy(zero_copy_only=False)
    gone = deletes & row.is_valid().to_numpy(zero_copy_only=False)
    every = Changes(
        keys=digests(keys.flatten()),
        row=np.where(deletes, NONE, np.arange(len(offset))),
        topic=topic,
        partition=kafka.field("partition").to_numpy().astype(np.int64),
        offset=offset,
        tombstone=np.where(deletes & ~gone, offset, NONE),
        gone=gone,
        order_by=[row.field(each) for each in fold.order_by],
        kept=columns.column("kept").chunk(0) if "kept" in columns.column_names else None,
    )
    found = fold(every, apart=True)
    more = untold(every, found, np.flatnonzero(found.newest != NONE), apart=True).entries
    return _left(every, found, np.setdiff1d(more, found.newest), topics)


def _left(every: Changes, found: Folded, more: Integers, topics: tuple[str, ...]) -> Left:
    there = np.concatenate([found.newest != NONE, np.ones(len(more), np.bool_)])
    entry = np.concatenate([np.where(found.newest != NONE, found.newest, found.first), more])
    tombstone = np.concatenate([found.tombstone, np.full(len(more), NONE)])
    order = np.argsort(entry)  # that of the records, so that rows are written as they came
    there, entry, tombstone = there[order], entry[order], tombstone[order]
    gone = there & every.gone[entry]
    put = there & ~gone
    rows, number = entry[put], np.full(len(there), NONE)
    number[put] = np.arange(len(rows))
    none = pa.array(np.where(there, entry, 0), mask=~there)
    changes = Changes(
        keys=every.keys[entry],
        row=number,
        topic=every.topic[entry],
        partition=every.partition[entry],
        offset=np.where(there, every.offset[entry], NONE),
        tombstone=tombstone,
        gone=gone,
        order_by=[each.take(none) for each in every.order_by],
        kept=None if every.kept is None else every.kept.take(none),
    )
    return Left(rows, changes, topics)


def _ranked(names: pa.StringArray) -> tuple[tuple[str, ...], Integers]:
    """The names in order, and the place of each value among them."""
    found = names.dictionary_encode()
    known = found.dictionary.to_pylist()
    ordered = sorted(known)
    places = np.array([ordered.index(each) for each in known], np.int64)
    return tuple(ordered), places[found.indices.to_numpy()]


def to_bytes(left: Left, placed: Placed) -> bytes:
    """The entries as bytes, and where their rows are."""
    changes = left.changes
    there = changes.row != NONE
    file, row = np.zeros(len(there), np.int64), changes.row.copy()
    file[there], row[there] = placed.file[row[there]], placed.row[row[there]]
    columns = {f"key_{n}": pa.array(changes.keys[:, n]) for n in range(changes.keys.shape[1])}
    columns |= {"topic": pa.DictionaryArray.from_arrays(changes.topic, [*left.topics])}
    numbers = (file, row, changes.partition, changes.offset, changes.tombstone)
    columns |= dict(zip(_NUMBERS, map(pa.array, numbers), strict=True))
    columns |= {_GONE: pa.array(changes.gone)}
    columns |= {} if changes.kept is None else {_KEPT: changes.kept}
    columns |= {f"order_{n}": each for n, each in enumerate(changes.order_by)}
    batch = pa.RecordBatch.from_pydict(columns)
    schema = batch.schema.with_metadata({_FILES: json.dumps([*placed.files]).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_PACKED) as stream:
        stream.write_batch(batch.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class Entries:
    """The entries of a batch, of all tasks: ``file`` is the number among ``files`` of each."""

    changes: Changes
    file: Integers
    files: tuple[str, ...]
    topics: tuple[str, ...]

    def after(self, these: Integers, standing: pa.Table, order_by: Sequence[str]) -> Mask:
        """Which of these entries come after the rows that stand, by ``order_by`` and their place.

        ``standing`` has a row for each of them, with the columns and ``_kafka``.
        """
        changes, rows = self.changes, pa.array(these)
        rank = [each.take(rows) for each in changes.order_by]
        rank.append(pa.array(self.topics, pa.string()).take(pa.array(changes.topic[these])))
        rank += [pa.array(each[these]) for each in (changes.partition, changes.offset)]
        other = [standing.column(each).combine_chunks() for each in order_by]
        kafka = standing.column("_kafka").combine_chunks()
        other += [kafka.field(each) for each in _PLACE]
        return compared(rank, other, len(these)) > 0


def of_bytes(told: Sequence[bytes], width: int) -> Entries:
    """All entries of ``to_bytes``; ``width``: words of a key."""
    batches = [pa.ipc.open_stream(each).read_all() for each in told]
    if not batches:
        return _no_entries(width)
    named = [json.loads(each.schema.metadata[_FILES]) or [""] for each in batches]
    files = {name: number for number, name in enumerate(dict.fromkeys(chain(*named)))}
    numbers = [np.array([files[name] for name in each], np.int64) for each in named]
    plain = [each.replace_schema_metadata(None) for each in batches]
    topics = [each.column("topic").cast(pa.string()) for each in plain]
    whole = pa.concat_tables([each.drop_columns("topic") for each in plain])
    names, topic = _ranked(pa.chunked_array([c for e in topics for c in e.chunks]).combine_chunks())
    order_by = [each for each in whole.column_names if each.startswith("order_")]
    words = [whole.column(f"key_{n}").to_numpy() for n in range(width)]
    file = [of[each.column("file").to_numpy()] for of, each in zip(numbers, plain, strict=True)]
    row, partition, offset, tombstone = (whole.column(each).to_numpy() for each in _NUMBERS[1:])
    changes = Changes(
        keys=np.stack(words, axis=1),
        row=row,
        topic=topic,
        partition=partition,
        offset=offset,
        tombstone=tombstone,
        gone=whole.column(_GONE).to_numpy(),
        order_by=[whole.column(each).combine_chunks() for each in order_by],
        kept=whole.column(_KEPT).combine_chunks() if _KEPT in whole.column_names else None,
    )
    return Entries(changes, np.concatenate(file), (*files,), names)


def _no_entries(width: int) -> Entries:
    none = np.empty(0, np.int64)
    keys: Words = np.empty((0, width), np.uint64)
    no = np.empty(0, np.bool_)
    return Entries(Changes(keys, none, none, none, none, none, no), none, (), ())
