"""Damaged records of every format, through writer and checker; a campaign if it is run.

python -m tests.unit.formats.fuzz [--records 100000] [--seed 1] [--only avro]

Each record makes a row, or has a code. The reader of verify makes the same row of it, or refuses
it, too.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from rivermouth.config import Config, Pipeline, load
from rivermouth.config.columns import parse_columns
from rivermouth.errors.registry import SchemasUnknown
from rivermouth.formats.strict_json.types import sql_name
from rivermouth.formats.tasks import decoder_of
from rivermouth.verification.formats.reader import CannotTell, NoRow, Undecodable
from rivermouth.verification.proofs.decoding import EntryReaders, decoded
from rivermouth.verification.tables.ports import schema_of
from tests.unit.formats.avro.generated import Dice, Sample
from tests.unit.formats.avro.test_decoder import rows_of
from tests.unit.formats.broken_records import broken, damaged
from tests.unit.formats.made_records import ddl, document
from tests.unit.formats.protobuf.compiled import Compiled
from tests.unit.formats.protobuf.test_decoder import ROW, SHOP, random_order
from tests.unit.formats.test_required import batch
from tests.unit.verification.doubles import MemorySource, entry, span, subject

_AT_ONCE = 400
Damage = Callable[[random.Random, bytes], bytes]


@dataclass(frozen=True)
class Topic:
    """Some good records of a format, and what reads them. ``schemas``: those of a registry.
    ``damage`` changes a record.
    """

    source: Mapping[str, Any]
    columns: str
    values: list[bytes]
    damage: Damage = broken
    paths: Mapping[str, Any] | None = None
    files: Mapping[str, str] | None = None
    schemas: Mapping[int, str | None] | None = None

    def config(self, folder: Path) -> Config:
        for name, text in (self.files or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        pipeline = {
            "source": {"topics": ["t"], **self.source},
            "schema": self.columns,
            "columns": dict(self.paths or {}),
            "target": {"table": "s.t"},
        }
        whole = {"version": 1, "kafka": {"bootstrap.servers": "k:1"}, "warehouse": "./lake"}
        if self.schemas:
            whole["schema_registry"] = {"url": "http://r:1"}
        file = folder / "rivermouth.yml"
        file.write_text(json.dumps({**whole, "pipelines": {"p": pipeline}}), encoding="utf-8")
        return load(file)


def _bits(dice: random.Random, value: bytes) -> bytes:
    return damaged(value, dice)


def ddl_of(kind: pa.DataType) -> str:
    """The type as text of ``schema``."""
    if pa.types.is_list(kind):
        return f"ARRAY<{ddl_of(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<STRING, {ddl_of(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{each.name}: {ddl_of(each.type)}' for each in kind)}>"
    return sql_name(kind)


def _columns(row: pa.StructType) -> str:
    return ", ".join(f"`{each.name}` {ddl_of(each.type)}" for each in row)


def _json(dice: random.Random) -> Topic:
    text = ddl(dice, maps=dice.random() < 0.2)
    row = pa.struct(list(schema_of_text(text)))
    wild = dice.choice((0, 0.05))
    values = [document(dice, row, wild).encode() for _ in range(_AT_ONCE)]
    return Topic({"format": "json"}, text, values)


def _framed_json(dice: random.Random) -> Topic:
    topic = _json(dice)
    values = [b"\0\0\0\0\7" + each for each in topic.values]
    return Topic({"format": "json", "framing": "confluent"}, topic.columns, values, _either)


def _either(dice: random.Random, value: bytes) -> bytes:
    return (broken if dice.random() < 0.5 else _bits)(dice, value)


def _avro(dice: random.Random) -> Topic:
    sample = _sample(dice)
    source = {"format": "avro", "schema_file": "it.avsc"}
    files = {"it.avsc": sample.text}
    return Topic(source, _columns(sample.row), sample.written, _bits, files=files)


def _sample(dice: random.Random) -> Sample:
    return Dice(dice.randrange(1 << 30)).sample(_AT_ONCE)


def _avro_of_registry(dice: random.Random) -> Topic:
    """Of four writers; each column is of one of them, and some fit to no other."""
    samples = [_sample(dice) for _ in range(4)]
    names = {each.name: each.type for sample in samples for each in sample.row}
    values = [
        b"\0" + number.to_bytes(4, "big") + value
        for number, sample in enumerate(samples)
        for value in sample.written
    ]
    schemas: dict[int, str | None] = {n: each.text for n, each in enumerate(samples)}
    columns = _columns(pa.struct([*names.items()]))
    chosen = dice.sample(values, _AT_ONCE)
    return Topic({"format": "avro"}, columns, chosen, _bits, schemas={**schemas, 9: None})


def _protobuf(dice: random.Random) -> Topic:
    values = [random_order(_shop(), dice).SerializeToString() for _ in range(_AT_ONCE)]
    source = {"format": "protobuf", "schema_file": "it.proto", "message": "shop.Order"}
    return Topic(source, _columns(ROW), values, _bits, files={"it.proto": SHOP})


_COMPILED: list[Compiled] = []


def _shop() -> Compiled:
    if not _COMPILED:
        _COMPILED.append(Compiled(SHOP))
    return _COMPILED[0]


def _csv(dice: random.Random) -> Topic:
    def line() -> bytes:
        text = dice.choice(("", "x", '"a ""b"", c"', "é", '""', " "))
        number = dice.choice((0, -7, 2**40, "", "1.5"))
        flag, day = dice.choice(("true", "false", "")), dice.randint(1, 9)
        return f"{number},{text},{flag},2026-01-0{day}\n".encode()

    columns = "n BIGINT, s STRING, b BOOLEAN, d DATE"
    return Topic({"format": "csv"}, columns, [line() for _ in range(_AT_ONCE)], _either)


def _plain(kind: str, column: str) -> Callable[[random.Random], Topic]:
    def make(dice: random.Random) -> Topic:
        values = [str(dice.randint(-(2**64), 2**64)).encode() for _ in range(_AT_ONCE)]
        return Topic({"format": kind}, column, values, _either)

    return make


def _events(dice: random.Random) -> Topic:
    def event(number: int) -> bytes:
        op = dice.choice(("c", "u", "u", "u", "d", "d", "r", "m", "t", "x"))
        price = base64.b64encode(dice.randbytes(dice.choice((1, 2, 3, 4, 4, 6)))).decode()
        row = {"id": number, "price": price, "day": dice.randint(-(720_000), 10**6)}
        row |= {
            "at": dice.randrange(2**50),
            "note": dice.choice(("", "__debezium_unavailable_value")),
        }
        put, old = (None, row) if op == "d" else (row, dice.choice((None, row)))
        record = {"op": op, "after": put, "before": old, "source": {"lsn": number}}
        return json.dumps({"payload": record} if dice.random() < 0.3 else record).encode()

    columns = "id BIGINT, price DECIMAL(12,2), day DATE, at TIMESTAMP_NTZ, note STRING, lsn BIGINT"
    paths = {"lsn": {"from": "$.source.lsn"}, "at": {"as": dice.choice(("us", "ms", "ns"))}}
    source = {"format": "json", "envelope": "debezium"}
    return Topic(source, columns, [event(n) for n in range(_AT_ONCE)], broken, paths)


TOPICS: Mapping[str, Callable[[random.Random], Topic]] = {
    "json": _json,
    "json, framed": _framed_json,
    "avro": _avro,
    "avro, registry": _avro_of_registry,
    "protobuf": _protobuf,
    "csv": _csv,
    "string": _plain("string", "n BIGINT"),
    "raw": _plain("raw", "body BINARY"),
    "events": _events,
}


def schema_of_text(columns: str) -> pa.Schema:
    """The columns of a text as Arrow has them."""
    return schema_of(parse_columns(columns))


def judged(topic: Topic, dice: random.Random, folder: Path) -> Counter[str]:
    """What became of a topic's records, a third of them good. Raises AssertionError where writer
    and checker differ.
    """
    config = topic.config(folder)
    pipeline = config.pipelines["p"]
    values = [v if dice.random() < 0.3 else topic.damage(dice, v) for v in topic.values]
    found = _decoded(pipeline, batch([*values]), dict(topic.schemas or {}))
    rows, codes = rows_of(found.column("row")), found.column("code").to_pylist()
    names = tuple(each.name for each in pipeline.columns)
    its = entry(1, span(0, len(values)), decoder=pipeline.decoder, columns=names)
    asked = subject(config, MemorySource(), its, schemas=(topic.schemas or {}).get)
    read = EntryReaders(asked, schema_of(pipeline.columns), names).of(0)
    counts = Counter[str](records=len(values))
    for value, code, row in zip(values, codes, rows, strict=True):
        counts["good" if code is None else "skipped" if code == "skipped" else "bad"] += 1
        due = row if code is None else NoRow if code == "skipped" else Undecodable
        try:
            ours: object = decoded(read, value)
        except CannotTell:
            counts["unknown"] += 1
            continue
        except (NoRow, Undecodable) as fault:
            ours = type(fault)
        same = ours == due or repr(ours) == repr(due)  # -0.0 is 0.0, and NaN is NaN
        assert same, f"{code} {due}, but verify has {ours}: {value!r} of {topic.columns}"
    return counts


def _decoded(
    pipeline: Pipeline, values: pa.RecordBatch, schemas: dict[int, str | None]
) -> pa.RecordBatch:
    """The driver asks the registry for each number that a batch meets."""
    while True:
        try:
            return decoder_of(pipeline.model_copy(update={"schemas": schemas}))(values)
        except SchemasUnknown as unknown:
            schemas |= dict.fromkeys(unknown.numbers)


def campaign(kind: str, seed: int) -> Iterator[Counter[str]]:
    """Judges one topic after the other, without end."""
    dice = random.Random(f"{kind} {seed}")
    while True:
        with TemporaryDirectory() as folder:
            yield judged(TOPICS[kind](dice), dice, Path(folder))


def main() -> None:
    """Run a campaign for each format; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*TOPICS])
    given = parser.parse_args()
    result: dict[str, object] = {"seed": given.seed}
    for kind in [given.only] if given.only else TOPICS:
        total, began, slowest = Counter[str](), time.monotonic(), 0.0
        for counts in islice(campaign(kind, given.seed), -(-given.records // _AT_ONCE)):
            total += counts
            took, began = time.monotonic() - began, time.monotonic()
            slowest = max(slowest, took)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        result[kind] = {**total, "slowest_s": round(slowest, 2), "peak_mb": most}
        print(f"{kind}: {result[kind]}", flush=True)
    print(json.dumps({**result, "differences": 0}))  # one ends it before


if __name__ == "__main__":
    main()
