"""Totals against a fold in plain Python: record by record, batch by batch."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.config.formats import FORMATS
from rivermouth.protocol.commits import Outcome
from rivermouth.protocol.entry import RowCounts
from tests.kinds.kinds import PAIRS
from tests.spark.batch_table import BatchTable, keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GREATEST = 2**63 - 1
BEGIN = datetime(2026, 1, 2, tzinfo=timezone.utc)
SCHEMA = "who BIGINT, units BIGINT, price DECIMAL(6,2), at TIMESTAMP, buyer STRING"
METRICS = {
    "n": "count()",
    "told": "count(units)",
    "units": "sum(units)",
    "spent": "sum(price)",
    "first": "min(at)",
    "last": "max(at)",
    "buyers": "approx_distinct(buyer)",
}


def totals_pipeline(**target: Any) -> Pipeline:
    keys = ("who", "window(at, '15 minutes')")
    wanted = {"mode": "aggregate", "keys": keys, "order_by": (), "metrics": METRICS, **target}
    return a_pipeline(schema=SCHEMA, key=None, **wanted)


ADDED_UP = {name: text for name, text in METRICS.items() if name != "buyers"}
"""Without the approximate count, which Spark has to make."""


@pytest.fixture(
    params=[("files", ADDED_UP), ("merge", METRICS), ("replaceUsing", METRICS)],
    ids=["files", "merge", "replaceUsing"],
)
def table(request: pytest.FixtureRequest, bench: Bench) -> BatchTable:
    """A new table, one after the other for all ways."""
    way, metrics = request.param
    return keyed_table(bench, totals_pipeline(metrics=metrics), way)


def record(who: int, units: int | None, minute: int = 0, price: str | None = "1.25") -> bytes:
    at = (BEGIN + timedelta(minutes=minute)).isoformat()
    buyer = f"b{(units or 0) % 5}"
    told = {"who": who, "units": units, "price": price, "at": at, "buyer": buyer}
    return json.dumps(told).encode()


@dataclass
class Total:
    """The row of one key, in plain Python."""

    n: int = 0
    units: list[int] = field(default_factory=list)
    spent: list[Decimal] = field(default_factory=list)
    at: list[datetime] = field(default_factory=list)
    buyers: set[str] = field(default_factory=set)

    def row(self) -> tuple[Any, ...]:
        sums = sum(self.units) if self.units else None, sum(self.spent) if self.spent else None
        return (self.n, len(self.units), *sums, min(self.at), max(self.at), len(self.buyers))


Key = tuple[int, datetime]


def added(totals: dict[Key, Total], values: Sequence[bytes]) -> set[int]:
    """Add a batch to the totals; the numbers of the records of keys that would overflow."""
    by_key: dict[Key, list[tuple[int, dict[str, Any]]]] = {}
    for number, value in enumerate(values):
        told = json.loads(value)
        at = datetime.fromisoformat(told["at"])
        start = BEGIN + (at - BEGIN) // timedelta(minutes=15) * timedelta(minutes=15)
        by_key.setdefault((told["who"], start), []).append((number, {**told, "at": at}))
    bad: set[int] = set()
    for key, records in by_key.items():
        units = [each["units"] for _, each in records if each["units"] is not None]
        total = totals.get(key, Total())
        if not -GREATEST - 1 <= sum(total.units) + sum(units) <= GREATEST:
            bad |= {number for number, _ in records}
            continue
        totals[key] = total
        total.n += len(records)
        total.units += units
        total.spent += [Decimal(each["price"]) for _, each in records if each["price"]]
        total.at += [each["at"] for _, each in records]
        total.buyers |= {each["buyer"] for _, each in records}
    return bad


def totals_of(table: BatchTable) -> dict[Key, tuple[Any, ...]]:
    rows = table.rows()
    assert [row for row in rows if "buyers" in row and not row["buyers_sketch"]] == []
    found = {(row["who"], row["window_start"]): row for row in rows}
    assert len(found) == len(rows), "a key twice"
    return {key: tuple(row[e] for e in METRICS if e in row) for key, row in found.items()}


def numbered(values: Sequence[bytes], first: int = 0) -> list[RawRow]:
    """Records of partition 0, from the offset ``first`` on."""
    return [(None, each, 0, first + at) for at, each in enumerate(values)]


def refused_of(table: BatchTable, commit: str) -> dict[int, str]:
    """Codes of the records in quarantine under a commit, by offset."""
    return {offset: code for (_, offset), code in table.bad(commit).items()}


def batch(dice: random.Random) -> list[bytes]:
    """A few records; some nulls, now and then a number that may not fit."""
    made = []
    for _ in range(dice.choice([1, 12, 40])):
        units = dice.choice([None, 1, -3, 20, GREATEST // 2, -GREATEST // 2])
        price = dice.choice([None, "0.01", "9999.99"])
        made.append(record(dice.randrange(3), units, dice.randrange(40), price))
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_batches_lead_where_the_records_one_by_one_lead(table: BatchTable, seed: int) -> None:
    dice, totals = random.Random(seed), dict[Key, Total]()
    offset, bad = 0, 0
    for _ in range(4):
        values = batch(dice)

        plan = table.land(numbered(values, offset))

        refused = {offset + each for each in added(totals, values)}
        assert table.outcome(plan) is Outcome.COMMITTED
        assert table.entry.rows == (RowCounts(len(values) - len(refused), len(refused)),)
        found = totals_of(table)
        width = max(map(len, found.values()))
        assert found == {key: each.row()[:width] for key, each in totals.items()}
        assert refused_of(table, plan.commit) == dict.fromkeys(refused, "RM606")
        offset, bad = offset + len(values), bad + len(refused)
    assert bad > 0, "no sum was too great: choose another seed"


@pytest.mark.takes_long("merge", "replaceUsing")
def test_bad_records_and_sums_that_do_not_fit_come_in_one_batch(table: BatchTable) -> None:
    others = [record(1, 1), record(2, 7), b'{"who": 2, "units": 1}']
    plan = table.land(numbered([record(1, GREATEST), b"{oops", *others]))

    assert refused_of(table, plan.commit) == {0: "RM606", 1: "RM603", 2: "RM606", 4: "RM605"}
    assert [(key[0], row[0]) for key, row in totals_of(table).items()] == [(2, 1)]


@pytest.mark.takes_long("merge", "replaceUsing")
def test_a_sum_that_fits_no_longer_is_found_by_the_commit_and_its_batch_is_split(
    table: BatchTable,
) -> None:
    """All records of the batch can be decoded, and no sum of the batch alone overflows."""
    table.land(numbered([record(1, GREATEST)]))

    plan = table.land(numbered([record(1, 1), record(2, 7)], 1))

    assert refused_of(table, plan.commit) == {1: "RM606"}
    assert {key[0]: row[2] for key, row in totals_of(table).items()} == {1: GREATEST, 2: 7}


@pytest.mark.thorough
@pytest.mark.parametrize("order", [(GREATEST, 1, -5), (1, -5, GREATEST), (-5, GREATEST, 1)])
def test_whether_a_sum_fits_does_not_depend_on_the_order_of_its_records(
    bench: Bench, order: Sequence[int]
) -> None:
    """Spark's ``try_sum`` is null if any sum on the way does not fit."""
    table = keyed_table(bench, totals_pipeline())
    table.land(numbered([record(1, each) for each in order]))
    assert table.bad() == {}
    assert totals_of(table)[1, BEGIN][2] == GREATEST - 4


HUGE = 9 * 10**37


@pytest.mark.thorough
@pytest.mark.parametrize(
    "order", [(HUGE, HUGE, -HUGE, -HUGE), (HUGE, -HUGE, HUGE, -HUGE), (-HUGE, HUGE, -HUGE, HUGE)]
)
def test_whether_wide_decimals_fit_does_not_depend_on_the_order_of_their_records(
    bench: Bench, order: Sequence[int]
) -> None:
    """Some orders fit on the way, and others do not."""
    wide = {"schema": "who BIGINT, units DECIMAL(38,0)", "metrics": {"units": "sum(units)"}}
    table = keyed_table(
        bench, a_pipeline(**wide, key=None, mode="aggregate", keys=("who",), order_by=())
    )
    told = [json.dumps({"who": 1, "units": each}).encode() for each in (*order, 5)]
    told.append(json.dumps({"who": 2, "units": HUGE // 10}).encode())

    plan = table.land(numbered(told))

    assert refused_of(table, plan.commit) == dict.fromkeys(range(5), "RM606")
    (row,) = table.rows()
    assert (row["who"], row["units"]) == (2, HUGE // 10)


@pytest.mark.thorough
def test_a_time_whose_window_begins_before_all_times_is_a_bad_key(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The strict rules of JSON know no such time; another format may.
    monkeypatch.setitem(FORMATS.by_name, "json", PAIRS)
    table = keyed_table(bench, totals_pipeline())
    times = (b"-290308-12-21T19:59:05.224192Z", b"2026-01-02T03:04:05Z")

    plan = table.land(numbered([b"who=1;units=1;at=" + each for each in times]))

    assert refused_of(table, plan.commit) == {0: "RM605"}
    assert [row[0] for row in totals_of(table).values()] == [1]


@pytest.mark.thorough
def test_a_batch_of_nothing_good_is_a_commit_without_a_row(table: BatchTable) -> None:
    assert table.outcome(table.land(numbered([b"{oops"]))) is Outcome.COMMITTED
    assert totals_of(table) == {}
