"""What a task makes of its records for totals, against plain Python."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Column, KeyPart, Measure
from rivermouth.formats.arrow import REFUSAL
from rivermouth.write.shapes import partial_totals
from rivermouth.write.shapes.partial_totals import TotalsInTask, parts_of

GREATEST = 2**63 - 1
HOUR_US = 3_600_000_000
ROW = pa.struct(
    [
        ("who", pa.int32()),
        ("n", pa.int64()),
        ("price", pa.decimal128(6, 2)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
KAFKA = pa.struct([("topic", pa.string()), ("partition", pa.int32())])
METRICS = (
    Measure("m", "count"),
    Measure("m", "count", "n"),
    Measure("m", "sum", "n"),
    Measure("m", "sum", "price"),
    Measure("m", "min", "at"),
    Measure("m", "max", "n"),
)

pytestmark = pytest.mark.unit


def at(minute: int) -> datetime:
    return datetime(2026, 1, 2, 3 + minute // 60, minute % 60, tzinfo=timezone.utc)


def record(
    who: int | None = 1, n: int | None = 1, price: str | None = None, minute: int = 0, part: int = 0
) -> dict[str, Any]:
    """A decoded row, as far as it is asked for."""
    row = {"who": who, "n": n, "price": price and Decimal(price), "at": at(minute)}
    return {"row": row, "_kafka": {"topic": "t", "partition": part}, "code": None}


def batch(*records: dict[str, Any]) -> pa.RecordBatch:
    columns = {
        "row": pa.array([each["row"] for each in records], ROW),
        "_kafka": pa.array([each["_kafka"] for each in records], KAFKA),
        "code": pa.array([each["code"] for each in records], pa.string()),
        "reason": pa.nulls(len(records), pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def fold(*batches: pa.RecordBatch, width_us: int | None = None) -> list[dict[str, Any]]:
    """What a task makes of decoded batches."""
    keys = [KeyPart("who", "who")]
    if width_us:
        keys.append(KeyPart("window_start", "at", width_us))
    in_task = TotalsInTask(lambda each: each, tuple(keys), METRICS)
    return [row for each in in_task(iter(batches)) for row in each.to_pylist()]


def test_a_row_comes_back_for_each_key_of_each_partition() -> None:
    found = fold(
        batch(
            record(1, 5, "1.25", 3), record(2, None), record(1, -7, None, 1), record(1, 2, part=4)
        )
    )

    assert sorted(found, key=lambda row: (row["key_columns"]["who"], row["records"])) == [
        {
            "_kafka": {"topic": "t", "partition": 4},
            "records": 1,
            "key_columns": {"who": 1},
            "count_1": 1,
            "high_2": 0,
            "low_2": 2,
            "sum_3": None,
            "min_4": at(0),
            "max_5": 2,
        },
        {
            "_kafka": {"topic": "t", "partition": 0},
            "records": 2,
            "key_columns": {"who": 1},
            "count_1": 2,
            "high_2": -1,
            "low_2": 5 + 2**32 - 7,
            "sum_3": Decimal("1.25"),
            "min_4": at(1),
            "max_5": 5,
        },
        {
            "_kafka": {"topic": "t", "partition": 0},
            "records": 1,
            "key_columns": {"who": 2},
            "count_1": 0,
            "high_2": None,
            "low_2": None,
            "sum_3": None,
            "min_4": at(0),
            "max_5": None,
        },
    ]


@pytest.mark.parametrize("numbers", [[GREATEST] * 5, [-GREATEST - 1] * 5, [GREATEST, -1, 5, -6]])
def test_both_halves_of_a_sum_hold_what_does_not_fit_into_64_bits(numbers: list[int]) -> None:
    [row] = fold(batch(*(record(n=each) for each in numbers)))
    assert (row["high_2"] << partial_totals.LOW_BITS) + row["low_2"] == sum(numbers)


def test_sums_of_decimals_have_room_for_all_records() -> None:
    [row] = fold(batch(*(record(price="9999.99") for _ in range(1_000))))
    assert row["sum_3"] == Decimal("9999990.00")


def test_many_batches_are_folded_before_all_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_totals, "_RECORDS", 4)
    given = [batch(record(n=each), record(n=each)) for each in range(5)]
    taken: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number, each in enumerate(given):
            taken.append(number)
            yield each

    in_task = TotalsInTask(lambda each: each, (KeyPart("who", "who"),), METRICS)
    returned = [(len(taken), each.to_pylist()) for each in in_task(batches())]

    assert [at for at, _ in returned] == [2, 4, 5]
    rows = [row for _, some in returned for row in some]
    assert [row["records"] for row in rows] == [4, 4, 2]
    assert sum(row["low_2"] for row in rows) == 2 * sum(range(5))


@pytest.mark.parametrize(
    ("minutes", "starts"),
    [([0, 59, 60], [(at(0), 2), (at(60), 1)]), ([61, 119], [(at(60), 2)])],
)
def test_a_window_begins_at_a_multiple_of_its_width(
    minutes: list[int], starts: list[tuple[datetime, int]]
) -> None:
    found = fold(batch(*(record(minute=each) for each in minutes)), width_us=HOUR_US)
    assert sorted((r["key_columns"]["window_start"], r["records"]) for r in found) == starts


def test_a_window_before_1970_begins_before_its_times() -> None:
    early = datetime(1969, 12, 31, 23, 30, tzinfo=timezone.utc)
    made = record()
    made["row"]["at"] = early
    [row] = fold(batch(made), width_us=HOUR_US)
    assert row["key_columns"]["window_start"] == early.replace(minute=0)


def beyond() -> pa.RecordBatch:
    """A time so early that its window begins before all times."""
    made = batch(record())
    times = pa.array([-(2**63)], pa.int64()).cast(ROW.field("at").type)
    fields = [made.column("row").field(each.name) for each in ROW]
    row = pa.StructArray.from_arrays([*fields[:-1], times], [each.name for each in ROW])
    return made.set_column(0, "row", row)


@pytest.mark.parametrize(
    "bad",
    [batch(record(), {**record(), "code": "RM603"}), batch(record(), record(None)), beyond()],
    ids=["a code", "no key", "no window"],
)
def test_a_record_that_goes_to_quarantine_fails_the_task(bad: pa.RecordBatch) -> None:
    with pytest.raises(RuntimeError, match=REFUSAL):
        fold(batch(record()), bad, width_us=HOUR_US)


class Owned(bytearray):
    """Memory whose end can be seen."""


def received(records: pa.RecordBatch) -> tuple[pa.RecordBatch, weakref.ref[Owned]]:
    """The batch as a worker of Spark's receives it, and the memory that all its columns share."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write(records)
    memory = Owned(sink.getvalue().to_pybytes())
    return pa.ipc.open_stream(pa.py_buffer(memory)).read_next_batch(), weakref.ref(memory)


def test_what_waits_for_its_fold_holds_no_value_of_a_record() -> None:
    """Else a task held the values of hundreds of thousands of records at once."""
    alive: list[int] = []
    seen: list[weakref.ref[Owned]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(5):
            given, memory = received(batch(record(), record(2)))
            seen.append(memory)
            yield given
            del given
            alive.append(sum(each() is not None for each in seen))

    def decode(given: pa.RecordBatch) -> pa.RecordBatch:
        made = batch(record(), record(2))  # the rows are new, and the place is Kafka's
        return made.set_column(1, "_kafka", given.column("_kafka"))

    in_task = TotalsInTask(decode, (KeyPart("who", "who"),), METRICS)
    assert sum(row["records"] for each in in_task(batches()) for row in each.to_pylist()) == 10
    assert max(alive) <= 1  # the one that the loop has at hand


def test_a_task_without_records_returns_nothing() -> None:
    assert fold() == []
    assert fold(batch()) == []


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        (Measure("m", "count"), ()),
        (Measure("m", "count", "n"), ("count_3",)),
        (Measure("m", "sum", "n"), ("high_3", "low_3")),
        (Measure("m", "sum", "price"), ("sum_3",)),
        (Measure("m", "max", "n"), ("max_3",)),
    ],
)
def test_each_metric_comes_back_in_its_parts(metric: Measure, parts: tuple[str, ...]) -> None:
    columns = {"n": Column("n", "BIGINT"), "price": Column("price", "DECIMAL(6,2)")}
    assert parts_of(3, metric, columns) == parts
