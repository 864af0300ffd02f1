"""Rows by key for the benchmarks: tables made by a generator, changes of their rows, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from loop import SCHEMA

AT_ONCE = 500_000
KEYED = {"mode": "upsert", "keys": ["auction"]}
_PLACE = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_FILE_ROWS = 2_000_000
_VECTORS = "delta.enableDeletionVectors"


def change(key: int, price: int) -> bytes:
    """One change of the row ``key``, as UTF-8 JSON of about 180 bytes."""
    return (
        f'{{"auction":{key},"bidder":{key % 1009},"price":{price},"channel":"channel-{key % 97}",'
        f'"url":"https://www.nexmark.example/{key:x}/item.htm?query=1",'
        f'"at":"2026-03-01T00:00:00.000Z","extra":"{key * 2654435761 % (1 << 64):036x}"}}'
    ).encode()


def generate(table: Path, rows: int, *, vectors: bool = True) -> None:
    """Add a row for each key below ``rows`` to a table, in a random order; make it if missing."""
    if not DeltaTable.is_deltatable(str(table)):
        DeltaTable.create(
            str(table),
            pa.schema([*SCHEMA, ("_kafka", _PLACE)]),
            configuration={_VECTORS: str(vectors).lower()},
        )
    keys = np.random.default_rng(7).permutation(rows)
    for first in range(0, rows, _FILE_ROWS):
        write_deltalake(
            str(table),
            _rows(keys[first : first + _FILE_ROWS], first),
            mode="append",
            writer_properties=WriterProperties(compression="ZSTD"),
        )


def _rows(keys: np.ndarray[tuple[int], np.dtype[np.int64]], first: int) -> pa.Table:
    told = keys.tolist()
    texts = {
        "channel": [f"channel-{key % 97}" for key in told],
        "url": [f"https://www.nexmark.example/{key:x}/item.htm?query=1" for key in told],
        "extra": [f"{key * 2654435761 % (1 << 64):036x}" for key in told],
    }
    at = pa.repeat(pa.scalar(1_772_323_200_000_000, pa.timestamp("us", "UTC")), len(keys))
    place = [
        pa.repeat("generated", len(keys)),
        pa.repeat(pa.scalar(0, pa.int32()), len(keys)),
        pa.array(np.arange(first, first + len(keys))),
        at,
    ]
    columns = {
        "auction": pa.array(keys),
        "bidder": pa.array(keys % 1009),
        "price": pa.array(np.zeros(len(keys), np.int64)),
        **{name: pa.array(values) for name, values in texts.items()},
        "at": at,
        "_kafka": pa.StructArray.from_arrays(place, fields=[*_PLACE]),
    }
    return pa.table({name: columns[name] for name in [*SCHEMA.names, "_kafka"]})


def compare(tables: Sequence[Path]) -> None:
    """Exit unless all tables have the same rows, but for where they are from."""
    first, *others = map(_sorted, tables)
    for table, each in zip(tables[1:], others, strict=True):
        if not first.equals(each):
            raise SystemExit(f"{table} differs from {tables[0]}")


def _sorted(table: Path) -> pa.Table:
    asked = QueryBuilder().register("rows", DeltaTable(str(table)))
    columns = ", ".join(SCHEMA.names)
    found = asked.execute(f"SELECT {columns} FROM rows ORDER BY auction").read_all()
    return pa.table(found).cast(SCHEMA)
