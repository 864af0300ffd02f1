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
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.config.registry import FORMATS
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import Landing, RawBatch
from rivermouth.write.landings.merge import Merge
from rivermouth.write.landings.replace_using import ReplaceUsing
from rivermouth.write.rows import Keyed
from tests.kinds.kinds import PAIRS
from tests.landing import land
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
"""Without the approximate count, which tasks do not make."""


@pytest.fixture(
    params=[(way, metrics) for way in ("merge", "replaceUsing") for metrics in (METRICS, ADDED_UP)],
    ids=["merge", "merge, folded in tasks", "replaceUsing", "replaceUsing, folded in tasks"],
)
def landing(request: pytest.FixtureRequest, bench: Bench) -> Landing:
    """A landing on a new table, one after the other in all ways."""
    way, metrics = request.param
    pipeline = totals_pipeline(metrics=metrics)
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    assert isinstance(site.rows, Keyed)
    assert (site.rows.partly is None) == (metrics is METRICS)
    by_merge: Landing = Merge(site)
    if way == "merge":
        return by_merge
    return ReplaceUsing(site, site.rows, marked=False)


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


def table_of(bench: Bench) -> dict[Key, tuple[Any, ...]]:
    rows = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert [row for row in rows if "buyers" in row and not row["buyers_sketch"]] == []
    found = {(row["who"], row["window_start"]): row for row in rows}
    assert len(found) == len(rows), "a key twice"
    return {key: tuple(row[e] for e in METRICS if e in row) for key, row in found.items()}


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
def test_batches_lead_where_the_records_one_by_one_lead(
    bench: Bench, landing: Landing, seed: int
) -> None:
    dice, totals = random.Random(seed), dict[Key, Total]()
    log, position, offset, bad = FolderLog(bench.folder / "orders"), Position(), 0, 0
    for sequence in range(1, 5):
        values = batch(dice)
        rows: list[RawRow] = [(None, each, 0, offset + at) for at, each in enumerate(values)]
        plan = bench.plan(sequence, rows, position)
        position = plan.draft.position

        land(landing, RawBatch(bench.raw(rows), decoder(totals_pipeline())), plan)

        refused = {offset + each for each in added(totals, values)}
        commits = [*log.commits()]
        assert classify(plan, commits) is Outcome.COMMITTED
        entry = entry_of(commits[-1], "p")
        counts = RowCounts(len(values) - len(refused), len(refused))
        assert entry is not None
        assert entry.rows == (counts,)
        found = table_of(bench)
        width = max(map(len, found.values()))
        assert found == {key: each.row()[:width] for key, each in totals.items()}
        assert quarantined(bench, plan.commit) == dict.fromkeys(refused, "RM606")
        offset, bad = offset + len(values), bad + len(refused)
    assert bad > 0, "no sum was too great: choose another seed"


def quarantined(bench: Bench, commit: str) -> dict[int, str]:
    folder = bench.folder / "orders_quarantine"
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist() if folder.exists() else []
    return {row["offset"]: row["code"] for row in rows if row["commit"] == commit}


@pytest.mark.takes_long("merge", "replaceUsing, folded in tasks", "replaceUsing")
def test_bad_records_and_sums_that_do_not_fit_come_in_one_batch(
    bench: Bench, landing: Landing
) -> None:
    values = [
        record(1, GREATEST),
        b"{oops",
        record(1, 1),
        record(2, 7),
        b'{"who": 2, "units": 1}',
    ]
    rows: list[RawRow] = [(None, each, 0, at) for at, each in enumerate(values)]
    plan = bench.plan(1, rows, Position())

    land(landing, RawBatch(bench.raw(rows), decoder(totals_pipeline())), plan)

    assert quarantined(bench, plan.commit) == {0: "RM606", 1: "RM603", 2: "RM606", 4: "RM605"}
    assert [(key[0], row[0]) for key, row in table_of(bench).items()] == [(2, 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("order", [(GREATEST, 1, -5), (1, -5, GREATEST), (-5, GREATEST, 1)])
def test_whether_a_sum_fits_does_not_depend_on_the_order_of_its_records(
    bench: Bench, order: Sequence[int]
) -> None:
    """Spark's ``try_sum`` is null if any sum on the way does not fit."""
    pipeline = totals_pipeline()
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    rows: list[RawRow] = [(None, record(1, each), 0, at) for at, each in enumerate(order)]
    plan = bench.plan(1, rows, Position())

    land(Merge(site), RawBatch(bench.raw(rows), decoder(pipeline)), plan)

    assert quarantined(bench, plan.commit) == {}
    assert table_of(bench)[1, BEGIN][2] == GREATEST - 4


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
    pipeline = a_pipeline(**wide, key=None, mode="aggregate", keys=("who",), order_by=())
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    told = [json.dumps({"who": 1, "units": each}).encode() for each in (*order, 5)]
    told.append(json.dumps({"who": 2, "units": HUGE // 10}).encode())
    rows: list[RawRow] = [(None, each, 0, at) for at, each in enumerate(told)]
    plan = bench.plan(1, rows, Position())

    land(Merge(site), RawBatch(bench.raw(rows), decoder(pipeline)), plan)

    assert quarantined(bench, plan.commit) == dict.fromkeys(range(5), "RM606")
    (row,) = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert (row["who"], row["units"]) == (2, HUGE // 10)


@pytest.mark.thorough
def test_a_time_whose_window_begins_before_all_times_is_a_bad_key(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The strict rules of JSON know no such time; another format may.
    monkeypatch.setitem(FORMATS.by_name, "json", PAIRS)
    pipeline = totals_pipeline()
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    rows: list[RawRow] = [
        (None, b"who=1;units=1;at=-290308-12-21T19:59:05.224192Z", 0, 0),
        (None, b"who=1;units=2;at=2026-01-02T03:04:05Z", 0, 1),
    ]
    plan = bench.plan(1, rows, Position())

    land(Merge(site), RawBatch(bench.raw(rows), decoder(pipeline)), plan)

    assert quarantined(bench, plan.commit) == {0: "RM605"}
    assert [row[0] for row in table_of(bench).values()] == [1]


@pytest.mark.thorough
def test_a_batch_of_nothing_good_is_a_commit_without_a_row(bench: Bench, landing: Landing) -> None:
    rows: list[RawRow] = [(None, b"{oops", 0, 0)]
    plan = bench.plan(1, rows, Position())
    land(landing, RawBatch(bench.raw(rows), decoder(totals_pipeline())), plan)
    assert classify(plan, FolderLog(bench.folder / "orders").commits()) is Outcome.COMMITTED
    assert table_of(bench) == {}
