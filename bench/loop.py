"""A peer of the benchmarks without Spark: a plain loop of Kafka's client, pyarrow and delta-rs.

It is what one would write by hand for one topic on one machine. It keeps no bad records: a value
that cannot be read ends it. Each batch has a ``txn`` in its commit, and nothing proves more.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from bids import COLUMNS
from confluent_kafka import Consumer, Message, TopicPartition
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from pyarrow import json as arrow_json

_AT = pa.timestamp("us", "UTC")
_TYPES = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": _AT}
SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in COLUMNS])
_READ = arrow_json.ReadOptions(block_size=16 << 20)
_PARSE = arrow_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
_SETTINGS = {
    "group.id": "loop",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": False,
    "fetch.message.max.bytes": 16 << 20,
    "fetch.max.bytes": 64 << 20,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 256 << 10,
}
_POLLED = 50_000
_PATIENCE_S = 30


@dataclass(frozen=True)
class Place:
    """Where a table is: a path, or an address and how it is reached."""

    url: str
    options: dict[str, str] | None


def loop(order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Read the topic to the end that it has now; return the time from start to the last commit.

    It begins at the offsets ``begins`` of the partitions, if these are given. With ``keys`` it
    keeps the newest row of each: of a key the last record of the batch counts. ``url`` is the
    table's place in a store, reached by ``options``.
    """
    place = Place(order.get("url", str(table)), order.get("options"))
    began, batches = time.monotonic(), list[float]()
    consumer = Consumer({**_SETTINGS, "bootstrap.servers": order["servers"]})
    try:
        left, number = _assign(consumer, order["topic"], order.get("begins")), 0
        while left:
            begun = time.monotonic()
            batch = _batch(consumer, min(left, order["per_batch"]))
            number += 1
            rows = _rows(order["topic"], batch)
            if "keys" in order:
                _merge(place, rows, order["keys"])
            else:
                _append(place, rows, number)
            left -= len(batch)
            batches.append(time.monotonic() - begun)
    finally:
        consumer.close()
    return {"seconds": time.monotonic() - began, "startup": 0.0, "batches": batches}


def _assign(consumer: Consumer, topic: str, begins: Sequence[int] | None) -> int:
    """Read all partitions from there on, or whole; return how many records that are."""
    partitions = consumer.list_topics(topic, _PATIENCE_S).topics[topic].partitions
    places = [TopicPartition(topic, each) for each in partitions]
    marks = [consumer.get_watermark_offsets(each, _PATIENCE_S) for each in places]
    for place, (low, _) in zip(places, marks, strict=True):
        place.offset = low if begins is None else begins[place.partition]
    consumer.assign(places)
    pairs = zip(places, marks, strict=True)
    return sum(int(high - place.offset) for place, (_, high) in pairs)


def _batch(consumer: Consumer, records: int) -> list[Message]:
    """The next so many records, of whatever partition."""
    batch: list[Message] = []
    while len(batch) < records:
        found = consumer.consume(min(records - len(batch), _POLLED), _PATIENCE_S)
        if not found:
            raise SystemExit(f"loop: no record in {_PATIENCE_S} s")
        for each in found:
            if each.error():
                raise SystemExit(f"loop: {each.error()}")
        batch += found
    return batch


def _rows(topic: str, batch: Sequence[Message]) -> pa.Table:
    """The rows of a batch, with the columns of the other peers."""
    values = b"\n".join(each.value() or b"" for each in batch)
    rows = arrow_json.read_json(BytesIO(values), _READ, _PARSE)
    if rows.num_rows != len(batch):
        raise SystemExit(f"loop: {rows.num_rows} rows of {len(batch)} records")
    milliseconds = pa.array([each.timestamp()[1] for each in batch], pa.timestamp("ms", "UTC"))
    kafka = pa.StructArray.from_arrays(
        [
            pa.repeat(topic, len(batch)),
            pa.array([each.partition() for each in batch], pa.int32()),
            pa.array([each.offset() for each in batch], pa.int64()),
            milliseconds.cast(_AT),
        ],
        ["topic", "partition", "offset", "timestamp"],
    )
    return rows.append_column("_kafka", kafka)


def _append(place: Place, rows: pa.Table, number: int) -> None:
    """One commit with the rows of the batch, and its ``txn``."""
    write_deltalake(
        place.url,
        rows,
        mode="append",
        storage_options=place.options,
        writer_properties=WriterProperties(compression="ZSTD"),
        commit_properties=CommitProperties(app_transactions=[Transaction("loop", number)]),
    )


def _merge(place: Place, rows: pa.Table, keys: Sequence[str]) -> None:
    """One commit by which the last row of each key replaces that of the table."""
    last = rows.append_column("n", pa.array(range(len(rows)))).group_by([*keys])
    newest = rows.take(last.aggregate([("n", "max")]).column("n_max"))
    same = " AND ".join(f"t.{each} = s.{each}" for each in keys)
    writer = WriterProperties(compression="ZSTD")
    table = DeltaTable(place.url, storage_options=place.options)
    merge = table.merge(newest, same, source_alias="s", target_alias="t", writer_properties=writer)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
