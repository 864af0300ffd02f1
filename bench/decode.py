"""Compares our decoders with those of Spark and of libraries over the same bytes, in one run.

    python bench/decode.py [--rounds 5] [--messages 1000000] [--only flat_json]

Flat records are bids of 230 bytes of JSON, nested ones have 1 KB and are a fourth as many; 0, 1 or
100 in a hundred are bad, of all kinds that ``encoded.SPOILT`` and ``BINARY`` have; where all are
bad, they are a fourth as many. Avro and Protobuf have the values of the same records.
The values are in the cache of one session, and what is made of them goes nowhere (``noop``).
``spark`` is ``from_json`` or ``from_avro``. ``arrow`` is ours in ``mapInArrow`` with the rows given
back to Spark, ``task`` the same without: as where tasks write the files. Both get Arrow batches as
the product makes and joins them. ``plain`` is ours in a loop of this process, ``record`` a library
there, record by record: fastavro, or Protobuf's own parser with each field asked for.
CPU-seconds are those of this process, its JVM and the Python workers. The rounds are interleaved,
the figures are medians. The last line is JSON: messages per CPU-second of ``arrow`` (and of
``task`` and ``plain``) divided by those of ``spark`` where there is one, and of ``plain`` divided
by those of ``record`` (``…_record``). ``bad_1_percent_…`` are those of ``arrow`` with 1 % bad
records divided by those with none; the aim is at least 0.7. They are there for ``task`` and
``plain``, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from bids import DDL, bid
from encoded import FORMS, Form, records
from peer import cpu_seconds
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config.columns import parse_columns
from rivermouth.formats.arrow import InArrow, Rebatched
from rivermouth.local.jars import jars
from rivermouth.local.session import start_session
from rivermouth.write.arrow_batches import NOT_MEASURED

NESTED = (
    "id BIGINT, at TIMESTAMP, paid BOOLEAN, total DECIMAL(12,2), note STRING, "
    "customer STRUCT<id: BIGINT, name: STRING, email: STRING, "
    "address: STRUCT<street: STRING, city: STRING, zip: STRING, lat: DOUBLE, lon: DOUBLE>>, "
    "tags ARRAY<STRING>, "
    "items ARRAY<STRUCT<sku: STRING, title: STRING, amount: INT, price: DECIMAL(12,2)>>"
)
Make = Callable[[int, random.Random], bytes]
CHUNK = 10_000
BESIDE = ("task", "plain")
"""The ways whose figures stand beside those of ``arrow``, under its names with their own behind."""
SHARES = (0, 1, 100)
WARMING = 2
"""Rounds until the JVM has compiled what runs often."""


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


def decode_in_arrow(ours: InArrow, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What ``mapInArrow`` runs, where the rows go back to Spark."""
    for batch in batches:
        decoded = ours.decode(batch.column("value"))
        yield pa.RecordBatch.from_arrays([decoded.rows, decoded.reasons], ["row", "reason"])


def decode_in_task(ours: InArrow, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What ``mapInArrow`` runs, where the task itself has use for the rows."""
    for batch in batches:
        decoded = ours.decode(batch.column("value"))
        yield pa.RecordBatch.from_arrays([[decoded.rows.null_count]], ["bad"])


def ways(
    session: SparkSession, values: list[bytes], ddl: str, form: Form, folder: Path
) -> dict[str, Callable[[], None]]:
    """What is compared; each decodes all values once."""
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
            form.ours.decode(each)

    def record(read: Callable[[bytes], object]) -> None:
        for each in values:
            with suppress(Exception):  # each library has its own
                read(each)

    arrow = frame.mapInArrow(Rebatched(partial(decode_in_arrow, form.ours)), types)
    in_task = frame.mapInArrow(Rebatched(partial(decode_in_task, form.ours)), "bad BIGINT")
    found: dict[str, Callable[[], None]] = {
        "arrow": partial(nowhere, arrow),
        "task": partial(nowhere, in_task),
        "plain": plain,
    }
    if form.spark is not None:
        found["spark"] = partial(nowhere, frame.select(form.spark()))
    if form.record is not None:
        found["record"] = partial(record, form.record)
    return found


def measured(
    what: dict[str, Callable[[], None]], rounds: int, count: int, name: str
) -> dict[str, float]:
    """Messages per CPU-second of each; the first rounds warm up and are not counted."""
    rates: dict[str, list[float]] = defaultdict(list)
    for turn in range(-WARMING, rounds):
        for way, run in what.items() if turn % 2 else reversed(what.items()):
            before = cpu_seconds(os.getpid())
            run()
            if turn >= 0:
                rates[way].append(count / (cpu_seconds(os.getpid()) - before))
    found = {way: statistics.median(each) for way, each in rates.items()}
    told = "  ".join(f"{way} {found[way]:9,.0f}" for way in what)
    print(f"{name:12} messages per CPU-second: {told}", flush=True)
    return found


def ratios_of(label: str, found: Mapping[str, float]) -> dict[str, float]:
    """How much faster ours is than Spark and the library."""
    ratios: dict[str, float] = {}
    if "spark" in found:
        ratios[label] = round(found["arrow"] / found["spark"], 2)
        for way in BESIDE:
            ratios[f"{label}_{way}"] = round(found[way] / found["spark"], 2)
    if "record" in found:
        ratios[f"{label}_record"] = round(found["plain"] / found["record"], 2)
    return ratios


def of_clean(rates: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """How fast 1 % bad records leave the decoder, for what was measured with and without them."""
    ratios: dict[str, float] = {}
    for form in FORMS:
        for name, size in (("flat", 230), ("nested", 1000)):
            clean, few = rates.get(f"{name}_{form}_0"), rates.get(f"{name}_{form}_1")
            if clean and few:
                for way in ("arrow", *BESIDE):
                    ratio = round(few[way] / clean[way], 2)
                    ratios[f"bad_1_percent_{form}_{size}_{way}"] = ratio
    return ratios


def cases(messages: int) -> Iterator[tuple[str, str, str, Make, int, int]]:
    """The name, the form, the columns, what makes records, how many, and the share of bad ones."""
    for form in FORMS:
        for name, make, ddl, part in (("flat", bid, DDL, 1), ("nested", order, NESTED, 4)):
            for share in SHARES:
                count = messages // (4 * part if share == 100 else part)
                yield f"{name}_{form}_{share}", form, ddl, make, count, share


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="what the names of the cases begin with")
    given = parser.parse_args()
    ratios: dict[str, float] = {}
    rates: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as place:
        peers = ",".join(map(str, jars("peers")))
        session = start_session(Path(place), {**NOT_MEASURED, "spark.jars": peers})
        for label, name, ddl, make, count, share in cases(given.messages):
            if not label.startswith(given.only):
                continue
            form = FORMS[name](ddl)
            values = records(make, form, count, share)
            print(f"{label}: {sum(map(len, values)) // count} bytes each", flush=True)
            folder = Path(place) / label
            folder.mkdir()
            compared = ways(session, values, form.ddl, form, folder)
            rates[label] = measured(compared, given.rounds, count, label)
            ratios |= ratios_of(label, rates[label])
            session.catalog.clearCache()
        session.stop()
    print(json.dumps(ratios | of_clean(rates)))


if __name__ == "__main__":
    main()
