"""Compares the strict JSON decoder with Spark's ``from_json`` over the same bytes, in one run.

    python bench/decode.py [--rounds 5] [--messages 300000] [--only flat_0]

Flat records are bids of 220 bytes, nested ones have 1 KB; 0, 1 or 100 in a hundred are bad. The
values are in the cache of one session, and what is made of them goes nowhere (``noop``). ``spark``
is ``from_json``, ``arrow`` ours in ``mapInArrow``, ``plain`` ours in a loop of this process.
CPU-seconds are those of this process, its JVM and the Python workers. The rounds are interleaved,
the figures are medians. The last line is JSON: messages per CPU-second of ``arrow`` (and of
``plain``) divided by those of ``spark``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from bids import DDL, bid
from peer import cpu_seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.config.ddl import parse_columns
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.settings import JsonSettings
from rivermouth.local.session import start_session

NESTED = (
    "id BIGINT, at TIMESTAMP, paid BOOLEAN, total DECIMAL(12,2), note STRING, "
    "customer STRUCT<id: BIGINT, name: STRING, email: STRING, "
    "address: STRUCT<street: STRING, city: STRING, zip: STRING, lat: DOUBLE, lon: DOUBLE>>, "
    "tags ARRAY<STRING>, "
    "items ARRAY<STRUCT<sku: STRING, title: STRING, amount: INT, price: DECIMAL(12,2)>>"
)
CHUNK = 10_000
SHARES = (0, 1, 100)


def order(number: int, dice: random.Random) -> bytes:
    """An order of about 1 KB, as UTF-8 JSON."""
    word = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=40))
    items = [
        {
            "sku": f"sku-{dice.randrange(10**6)}",
            "title": f"{word[:20]} Größe {n}",
            "amount": dice.randrange(1, 20),
            "price": dice.randrange(100, 100_000) / 100,
        }
        for n in range(7)
    ]
    address = {
        "street": f"{word[:12]} {number % 200}",
        "city": word[12:22],
        "zip": f"{dice.randrange(100_000):05}",
        "lat": dice.uniform(-90, 90),
        "lon": dice.uniform(-180, 180),
    }
    value = {
        "id": number,
        "at": f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.5Z",
        "paid": dice.random() < 0.5,
        "total": dice.randrange(10**7) / 100,
        "note": word * 3,
        "customer": {
            "id": dice.randrange(10**9),
            "name": word[:16],
            "email": f"{word[:8]}@example.org",
            "address": address,
        },
        "tags": [word[n : n + 5] for n in range(0, 25, 5)],
        "items": items,
        "left_out": word[:20],
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def spoilt(value: bytes, number: int) -> bytes:
    """The record made bad in one of four ways: text for a number, a brace, an end, a fraction."""
    first = value.index(b":") + 1
    end = value.index(b",")
    return (
        value[:first] + b'"x"' + value[end:],
        value + b"}",
        value[: len(value) // 2],
        value[:first] + b"1.5" + value[end:],
    )[number % 4]


def records(make: Callable[[int, random.Random], bytes], count: int, share: int) -> list[bytes]:
    """So many records, of which ``share`` in a hundred are bad."""
    dice, bad = random.Random(7), random.Random(8)
    made = (make(number, dice) for number in range(count))
    return [spoilt(v, n) if bad.random() * 100 < share else v for n, v in enumerate(made)]


def decode_in_arrow(
    strict: StrictJson, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What ``mapInArrow`` runs."""
    for batch in batches:
        decoded = strict.decode(batch.column("value"))
        yield pa.RecordBatch.from_arrays([decoded.rows, decoded.reasons], ["row", "reason"])


def ways(
    session: SparkSession, values: list[bytes], ddl: str, folder: Path
) -> dict[str, Callable[[], None]]:
    """What is compared; each decodes all values once."""
    strict = StrictJson.of(parse_columns(ddl), JsonSettings())
    table = pa.table({"value": pa.array(values, pa.binary())})
    file = folder / "values.parquet"
    pq.write_table(table, file, row_group_size=CHUNK)
    frame = session.read.parquet(str(file)).repartition(os.cpu_count() or 1).cache()
    assert frame.count() == len(values)
    fields = ", ".join(f"`{each.name}`: {each.type}" for each in parse_columns(ddl))
    types = f"row STRUCT<{fields}>, reason STRING"
    chunks = [each.column("value") for each in table.to_batches(CHUNK)]

    def nowhere(made: DataFrame) -> None:
        made.write.format("noop").mode("overwrite").save()

    def plain() -> None:
        for each in chunks:
            strict.decode(each)

    parsed = frame.select(F.from_json(F.col("value").cast("string"), ddl))
    ours = frame.mapInArrow(partial(decode_in_arrow, strict), types)
    return {"spark": partial(nowhere, parsed), "arrow": partial(nowhere, ours), "plain": plain}


def measured(
    what: dict[str, Callable[[], None]], rounds: int, count: int, name: str
) -> dict[str, float]:
    """Messages per CPU-second of each; the first round warms up and is not counted."""
    rates: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        for way, run in what.items() if turn % 2 else reversed(what.items()):
            before = cpu_seconds(os.getpid())
            run()
            if turn:
                rates[way].append(count / (cpu_seconds(os.getpid()) - before))
    found = {way: statistics.median(each) for way, each in rates.items()}
    told = "  ".join(f"{way} {found[way]:9,.0f}" for way in what)
    print(f"{name:12} messages per CPU-second: {told}", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--only", default="", help="what the names of the cases begin with")
    given = parser.parse_args()
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as place:
        session = start_session(Path(place))
        for name, make, ddl, part in (("flat", bid, DDL, 1), ("nested", order, NESTED, 4)):
            for share in SHARES:
                count = given.messages // part
                label = f"{name}_{share}"
                if not label.startswith(given.only):
                    continue
                values = records(make, count, share)
                print(f"{label}: {sum(map(len, values)) // count} bytes each", flush=True)
                folder = Path(place) / label
                folder.mkdir()
                compared = ways(session, values, ddl, folder)
                rates = measured(compared, given.rounds, count, label)
                ratios[label] = round(rates["arrow"] / rates["spark"], 2)
                ratios[f"{label}_plain"] = round(rates["plain"] / rates["spark"], 2)
                session.catalog.clearCache()
        session.stop()
    print(json.dumps(ratios))


if __name__ == "__main__":
    main()
