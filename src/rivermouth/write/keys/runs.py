"""Sorted runs of an index of keys, and the driver's disk, where a restart finds them.

A single key of whole numbers is its own digest, in one word of 64 bits. Any other key has two
words, a BLAKE2 digest of 128 bits over its values: that two of 10⁹ keys share one has a chance
below 10⁻²⁰.

A run is immutable. Of two runs that name one key the newer one counts. A place is a number: that of
the file in the upper 32 bits, that of the row in the lower ones.

A folder of one table holds a file for each large run, and ``index.json``, which names those that
count: whatever else lies there is of a driver that died. Nothing depends on any of it: what is
missing, damaged, or of another index is made anew from the table.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]
"""Digests: a column for each word, the most significant first."""

_SIGN = np.uint64(1 << 63)
_NULL, _VALUE = b"\x00", b"\x01"


def width_of(types: Sequence[pa.DataType]) -> int:
    """How many words the digest of such a key has."""
    return 1 if len(types) == 1 and pa.types.is_integer(types[0]) else 2


def digests(keys: Sequence[pa.Array]) -> Words:
    """The digests of keys, whose parts are these columns. Nulls are values, too.

    A single whole number that is null has no digest of one word: such a key is refused before.
    """
    if width_of([each.type for each in keys]) == 1:
        cast = pc.cast(keys[0], pa.int64())
        whole: npt.NDArray[np.int64] = cast.to_numpy(zero_copy_only=False)
        found: Words = whole.view(np.uint64) ^ _SIGN  # in the order of the numbers
        return found.reshape(-1, 1)
    parts = [_bytes(each) for each in keys]
    made = [
        hashlib.blake2b(b"".join(each), digest_size=16).digest()
        for each in zip(*parts, strict=True)
    ]
    return np.frombuffer(b"".join(made), ">u8").astype(np.uint64).reshape(-1, 2)


def _bytes(column: pa.Array) -> list[bytes]:
    """Each value as bytes that no other value has, whatever follows."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    elif not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        column = _fixed(column)
    return [
        _NULL if each is None else _VALUE + struct.pack("<I", len(each)) + each
        for each in column.to_pylist()
    ]


def _fixed(column: pa.Array) -> pa.Array:
    """Values of fixed width as their bytes, null where they are."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_integer(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.decimal128(38, kind.scale))
    width = column.type.bit_width // 8
    raw = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(column), [None, column.buffers()[1]], offset=column.offset
    )
    plain = raw.cast(pa.binary())
    return pc.if_else(column.is_valid(), plain, pa.scalar(None, pa.binary()))


Places = npt.NDArray[np.uint64]
NOWHERE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""The place of a key that is in no run."""
_SHARE = 4
AT_ONCE = 1 << 18
"""So many keys are merged within a batch."""
_AT_A_TIME, _THREADS = 1 << 16, 2
"""So many keys are looked for at a time: no task needs the cores meanwhile."""


@dataclass(frozen=True, eq=False)
class Run:
    """Keys in order, each once, with the places of their rows. A key whose place is ``NOWHERE`` is
    as one that is not there.

    ``values`` are what an index holds of each row (``index.Values``). The words of ``keys`` and
    ``values`` lie column by column (Fortran's order).
    """

    keys: Words
    places: Places
    values: Words

    def __len__(self) -> int:
        return len(self.places)

    def find(self, keys: Words) -> npt.NDArray[np.intp]:
        """Where these keys are in the run; -1 where they are not."""
        if not len(self):
            return np.full(len(keys), -1)
        at = np.searchsorted(self.keys[:, 0], keys[:, 0])
        at[at == len(self)] = 0
        if self.keys.shape[1] > 1:
            at = self._exactly(at, keys)
        same = (self.keys[at] == keys).all(axis=1) & (self.places[at] != NOWHERE)
        return np.where(same, at, -1)

    def _exactly(self, at: npt.NDArray[np.intp], keys: Words) -> npt.NDArray[np.intp]:
        """Past keys that share the first word: there is hardly ever one."""
        while True:
            following = np.minimum(at + 1, len(self) - 1)
            first = self.keys[at, 0] == keys[:, 0]
            below = first & (self.keys[at, 1] < keys[:, 1]) & (following > at)
            if not below.any():
                return at
            at = np.where(below, following, at)


def sorted_run(keys: Words, places: Places, values: Words) -> Run:
    """A run of rows in any order. Of several with one key the last one counts."""
    if (keys[1:, 0] > keys[:-1, 0]).all():
        return Run(np.asfortranarray(keys), places, np.asfortranarray(values))
    order = np.argsort(keys[:, 0], kind="stable")
    ordered = keys[order]
    same = ordered[1:, 0] == ordered[:-1, 0]
    if keys.shape[1] > 1 and (same & (ordered[1:, 1] != ordered[:-1, 1])).any():
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        same = (ordered[1:] == ordered[:-1]).all(axis=1)
    last = order if not same.any() else order[np.concatenate((~same, [True]))]
    return Run(np.asfortranarray(keys[last]), places[last], np.asfortranarray(values[last]))


def merged(runs: Sequence[Run]) -> Run:
    """All runs as one; the later ones are newer."""
    keys, places, values = (
        np.concatenate([getattr(each, name) for each in runs])
        for name in ("keys", "places", "values")
    )
    there = places != NOWHERE
    if not there.all():
        keys, places, values = keys[there], places[there], values[there]
    return sorted_run(keys, places, values)


class Runs:
    """An index of runs, the newest last, few at any time. ``width``: words of the values.

    A run is merged with its elder once it has a quarter of its keys: so there are as many as the
    logarithm of the keys, and each key is merged as often. Many keys are merged beside what
    follows, one merge at a time; ``kept`` is then given the run, and says how to hold it.
    """

    def __init__(
        self, width: int, runs: Sequence[Run] = (), kept: Callable[[Run], Run] = lambda run: run
    ) -> None:
        self._width, self._runs, self._kept = width, [*runs], kept
        self._parts, self._whole = list[Run](), list[Run]()
        self._merging: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether something is merged beside, or waits to be taken."""
        return self._merging is not None

    def add(self, run: Run) -> None:
        """The newest run."""
        self.settle(wait=False)
        if not len(run):
            return
        self._runs.append(run)
        begin = self._due()
        due = self._runs[begin:]
        if sum(map(len, due)) <= AT_ONCE:
            self._runs[begin:] = [merged(due)] if len(due) > 1 else due
        elif self._merging is None:
            self._parts = due
            self._merging = threading.Thread(target=self._merge, args=(due,), name="keys")
            self._merging.start()

    def settle(self, *, wait: bool = True) -> None:
        """Take what was merged beside; ``wait`` for it, or leave it as long as it goes on."""
        if self._merging is None or (not wait and self._merging.is_alive()):
            return
        self._merging.join()
        if self._whole:
            [begin] = [n for n, each in enumerate(self._runs) if each is self._parts[0]]
            self._runs[begin : begin + len(self._parts)] = self._whole
        self._merging, self._parts, self._whole = None, [], []

    def _due(self) -> int:
        """From which run on they are to be merged; what is being merged is left."""
        begin, number = len(self._runs) - 1, len(self._runs[-1])
        while begin and _SHARE * number >= len(self._runs[begin - 1]):
            if any(each is self._runs[begin - 1] for each in self._parts):
                break
            begin -= 1
            number += len(self._runs[begin])
        return begin

    def _merge(self, parts: Sequence[Run]) -> None:
        with suppress(MemoryError):  # they are as right apart
            self._whole = [self._kept(merged(parts) if len(parts) > 1 else parts[0])]

    def replace(self, run: Run, by: Run) -> None:
        """Hold a run in another way."""
        self._runs = [by if each is run else each for each in self._runs]
        self._parts = [by if each is run else each for each in self._parts]

    def __iter__(self) -> Iterator[Run]:
        """The newest last."""
        return iter(self._runs)

    def find(self, keys: Words) -> tuple[Places, Words]:
        """The place and the values of each key; ``NOWHERE`` for one that no run has."""
        parts = np.array_split(keys, max(len(keys) // _AT_A_TIME, 1))
        if len(parts) == 1:
            return self._find(keys)
        with ThreadPoolExecutor(_THREADS) as threads:
            found = [*threads.map(self._find, parts)]
        places, values = zip(*found, strict=True)
        return np.concatenate(places), np.concatenate(values)

    def _find(self, keys: Words) -> tuple[Places, Words]:
        places = np.full(len(keys), NOWHERE)
        values = np.zeros((len(keys), self._width), np.uint64)
        left = np.arange(len(keys))
        for run in reversed(self._runs):
            at = run.find(keys[left])
            here = at >= 0
            places[left[here]] = run.places[at[here]]
            values[left[here]] = run.values[at[here]]
            left = left[~here]
            if not len(left):
                break
        return places, values


_NAMES = "index.json"
_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Stored:
    """A run in a file: so many keys, and the check sum of the file."""

    name: str
    keys: int
    crc: int


@dataclass(frozen=True)
class Manifest:
    """What an index has on the disk. ``identity`` tells which index it is.

    ``files`` are the paths of the data files in the order of their numbers; ``vectors`` are, of
    those whose rows are in the runs, the deletion vectors that were known (``Vector.as_dict``).
    ``runs`` are the files of the runs, the newest last.
    """

    identity: str
    files: Sequence[str]
    vectors: Mapping[str, Mapping[str, Any] | None]
    runs: Sequence[Stored]


class Shelf:
    """The folder of one index, whose keys and values have so many words."""

    def __init__(self, folder: Path, keys: int, values: int) -> None:
        self._folder, self._keys, self._width = folder, keys, keys + 1 + values

    def put(self, run: Run) -> tuple[Run, Stored]:
        """Write a run, and give it back as it lies on the disk: pages come as they are asked for.

        Raises OSError.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        name, crc = f"{uuid.uuid4()}.run", 0
        with open(self._folder / name, "wb") as opened:
            for column in (*run.keys.T, run.places, *run.values.T):
                data = np.ascontiguousarray(column)
                crc = zlib.crc32(data.view(np.uint8).data, crc)
                data.tofile(opened)
        return self._mapped(name, len(run)), Stored(name, len(run), crc)

    def save(self, manifest: Manifest) -> None:
        """Let these runs count, and remove what no longer does. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"{_NAMES}.new"
        new.write_text(json.dumps(asdict(manifest)), "utf-8")
        os.replace(new, self._folder / _NAMES)
        left = {_NAMES, *(each.name for each in manifest.runs)}
        for each in self._folder.iterdir():
            if each.name not in left:
                each.unlink(missing_ok=True)

    def load(self, identity: str) -> tuple[Manifest, list[Run]] | None:
        """What is there of this index; None: nothing that is whole."""
        try:
            read = json.loads((self._folder / _NAMES).read_text("utf-8"))
            runs = [Stored(**each) for each in read.pop("runs")]
            found = Manifest(**read, runs=runs)
            whole = found.identity == identity and all(map(self._is_whole, runs))
            return (found, [self._mapped(e.name, e.keys) for e in runs]) if whole else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _is_whole(self, stored: Stored) -> bool:
        file, crc = self._folder / stored.name, 0
        if file.stat().st_size != stored.keys * 8 * self._width:
            return False
        with open(file, "rb") as opened:
            while data := opened.read(_AT_ONCE):
                crc = zlib.crc32(data, crc)
        return crc == stored.crc

    def _mapped(self, name: str, keys: int) -> Run:
        columns: npt.NDArray[np.uint64] = np.memmap(
            self._folder / name, np.uint64, "r", shape=(self._width, keys)
        )
        return Run(columns[: self._keys].T, columns[self._keys], columns[self._keys + 1 :].T)
