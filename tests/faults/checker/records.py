"""The visible records of one partition, as columns: some thirty bytes each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Message

from tests.faults.checker.decode import Decoder, Judged
from tests.faults.checker.digest import (
    Digests,
    Integers,
    of_bytes,
    of_column,
    of_integers,
    of_places,
    of_rows,
)
from tests.faults.checker.evidence import TYPES, Place, Watched, real, shown

Kinds = npt.NDArray[np.uint8]


def meanings(records: Mapping[Place, Records], place: Place) -> list[Records]:
    """The records that an offset of a partition has meant, the newest meaning first."""
    found = [each for each in records.values() if real(each.place) == real(place)]
    return sorted(found, key=lambda each: _since(each.place), reverse=True)


def _since(place: Place) -> int:
    """The sequence of the entry from which on the place has its name."""
    return int(place[0].partition("~")[2] or 0)


class Records:
    """What a read_committed consumer sees of ``place`` from ``start`` to ``until``.

    ``offsets``, ``kinds`` (see ``Kind``), ``raw`` (digest of key and value), ``rows`` (digest
    of the row it should leave), and for an upsert ``keys`` (digest of the key columns) and
    ``orders`` run side by side. ``aborted`` offsets hold records that it does not see. ``dark``
    are ranges that Kafka had deleted before they could be read here; a ``thinned`` topic is
    compacted, so that any record may be gone. ``end`` is where Kafka ends.
    """

    def __init__(self, place: Place, watched: Watched, start: int, *, thinned: bool) -> None:
        self.place = place
        self.start = self.until = start
        self.end = 0
        self.thinned = thinned
        self.dark: list[tuple[int, int]] = []
        self.offsets: Integers = np.empty(0, np.int64)
        self.kinds: Kinds = np.empty(0, np.uint8)
        self.raw: Digests = np.empty(0, np.uint64)
        self.rows: Digests = np.empty(0, np.uint64)
        self.keys: Digests = np.empty(0, np.uint64)
        self.orders: list[bytes] = []
        self.aborted: set[int] = set()
        self._watched = watched
        self._decoder = Decoder(watched)
        self._chunks: list[tuple[Integers, Kinds, Digests, Digests, Digests]] = []

    def __str__(self) -> str:
        return shown(self.place)

    def take(self, messages: Sequence[Message]) -> None:
        """Judge records that follow on those taken before; ``finish`` adds them."""
        judged = [self._decoder.judge(each.key(), each.value()) for each in messages]
        offsets = np.array([each.offset() for each in messages], np.int64)
        kinds = np.array([each.kind for each in judged], np.uint8)
        raw = np.array([of_bytes(each.key(), each.value()) for each in messages], np.uint64)
        stamps = np.array([each.timestamp()[1] * 1000 for each in messages], np.int64)
        values = [
            of_column(pa.array([each.values[i] if each.values else None for each in judged], kind))
            for i, kind in enumerate(TYPES[name] for _, name in self._watched.columns)
        ]
        rows = of_rows([*values, of_integers(stamps), *of_places(*real(self.place), offsets)])
        self._chunks.append((offsets, kinds, raw, rows, self._keys(judged)))
        if self._watched.order_by:
            self.orders += [self._decoder.order(each) for each in judged]
        else:
            self.orders += [b""] * len(judged)

    def _keys(self, judged: Sequence[Judged]) -> Digests:
        if not self._watched.keys:
            return np.zeros(len(judged), np.uint64)
        types = dict(self._watched.columns)
        columns = [
            pa.array([each.keys[i] if each.keys else None for each in judged], TYPES[types[name]])
            for i, name in enumerate(self._watched.keys)
        ]
        return of_rows([of_column(each) for each in columns])

    def finish(self, until: int) -> None:
        """Everything before ``until`` has been taken."""
        stood = (self.offsets, self.kinds, self.raw, self.rows, self.keys)
        joined = [np.concatenate(each) for each in zip(stood, *self._chunks, strict=True)]
        self.offsets, self.kinds, self.raw, self.rows, self.keys = joined
        self._chunks, self.until = [], until

    def take_uncommitted(self, messages: Sequence[Message]) -> None:
        """Note which offsets hold a record that a read_committed consumer does not see."""
        offsets = np.array([each.offset() for each in messages], np.int64)
        self.aborted.update(offsets[self.find(offsets) < 0].tolist())

    def visible(self, start: int, until: int) -> int:
        """How many records of ``[start, until)`` are visible."""
        first, last = self.between(start, until)
        return last - first

    def between(self, start: int, until: int) -> tuple[int, int]:
        """The indices of the records in ``[start, until)``, as a half-open range."""
        first, last = np.searchsorted(self.offsets, [start, until])
        return int(first), max(int(first), int(last))

    def find(self, offsets: Integers) -> Integers:
        """The index of the record at each offset; -1 where none is visible."""
        if not len(self.offsets):
            return np.full(len(offsets), -1, np.int64)
        at = np.minimum(np.searchsorted(self.offsets, offsets), len(self.offsets) - 1)
        return np.where(self.offsets[at] == offsets, at, -1)

    def at(self, offset: int) -> int:
        """The index of the record at an offset; -1 where none is visible."""
        return int(self.find(np.array([offset], np.int64))[0])

    def is_dark(self, start: int, until: int) -> bool:
        """Whether records in ``[start, until)`` may have been there that nobody can read."""
        return start < until and (
            self.thinned or any(low < until and start < high for low, high in self.dark)
        )
