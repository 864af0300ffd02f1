"""Totals as files against plain Python, and what does not fit."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.config.totals import why_spark
from rivermouth.write.files import writing
from rivermouth.write.keys.effect import LeftToSpark
from tests.unit.write.keys.world import KeyedTable, Record

pytestmark = pytest.mark.unit

GREATEST = 2**63 - 1
COLUMNS = (
    "who STRING, id INT, n BIGINT, price DECIMAL(12,2), at TIMESTAMP, day DATE, w DECIMAL(38,2)"
)
METRICS = {
    "records": "count()",
    "known": "count(n)",
    "spent": "sum(n)",
    "paid": "sum(price)",
    "wide": "sum(w)",
    "began": "min(at)",
    "dearest": "max(price)",
    "last_day": "max(day)",
}


def a_pipeline(*keys: str, by: tuple[str, ...] = (), metrics: Any = METRICS) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": COLUMNS,
            "target": {
                "table": "gold.t",
                "mode": "aggregate",
                "keys": keys,
                "metrics": metrics,
                "partition_by": by,
            },
        }
    )


def value(dice: random.Random) -> dict[str, Any]:
    day = dice.randrange(1, 28)
    return {
        "who": dice.choice(["a", "b", ""]),
        "id": dice.randrange(3),
        "n": dice.choice([None, 1, -7, 2**62 - 1, -(2**62)]),
        "price": dice.choice([None, 1.25, -9999999999.99]),
        "at": dice.choice([None, f"2026-01-{day:02}T10:00:00.000001Z"]),
        "day": dice.choice([None, f"2026-01-{day:02}"]),
        "w": dice.choice([None, 1e20, -0.01]),
    }


def totals(values: list[dict[str, Any]]) -> dict[str, Any]:
    def of(name: str) -> list[Any]:
        return [each[name] for each in values if each[name] is not None]

    def money(name: str) -> Decimal | None:
        found = [Decimal(str(each)).quantize(Decimal("0.01")) for each in of(name)]
        return sum(found, Decimal(0)) if found else None

    times = [datetime.fromisoformat(each.replace("Z", "+00:00")) for each in of("at")]
    return {
        "records": len(values),
        "known": len(of("n")),
        "spent": sum(of("n")) if of("n") else None,
        "paid": money("price"),
        "wide": money("w"),
        "began": min(times, default=None),
        "dearest": max((Decimal(str(each)) for each in of("price")), default=None),
        "last_day": max((date.fromisoformat(each) for each in of("day")), default=None),
    }


@pytest.mark.parametrize("seed", range(16))
def test_totals_are_those_of_all_records(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_RECORDS", 7)
    dice = random.Random(seed)
    keys = dice.choice([("who",), ("id",), ("who", "id"), ("window(at, '1 day')", "id")])
    by = dice.choice([(), ("last_day",), ("id",) if "id" in keys else ()])
    table, offset = KeyedTable(tmp_path / "t", a_pipeline(*keys, by=by)), 0
    taken: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    names = [each.name for each in table.pipeline.target.key_parts]
    for _ in range(6):
        tasks: list[list[Record]] = [[] for _ in range(dice.randrange(1, 4))]
        for _ in range(dice.randrange(25)):
            made = value(dice)
            if any(n["n"] for n in taken.get(key_of(names, made), ())):
                made["n"] = None  # so that no sum overflows
            if key_of(names, made)[0] is not None:
                taken[key_of(names, made)].append(made)
            offset += 1
            dice.choice(tasks).append(Record(0, offset, {}, made))
        table.land(*tasks)
        found = {tuple(row.pop(name) for name in names): row for row in table.rows()}
        assert found == {key: totals(values) for key, values in taken.items()}
        if dice.random() < 0.3:
            table.restart()


def key_of(names: list[str], made: dict[str, Any]) -> tuple[Any, ...]:
    at = made["at"] and datetime.fromisoformat(made["at"][:10]).replace(tzinfo=timezone.utc)
    return tuple(at if name == "window_start" else made[name] for name in names)


def spending(offset: int, who: str, n: int) -> Record:
    return Record(0, offset, {}, {"who": who, "n": n})


def test_each_of_many_totals_goes_on_from_the_row_that_stands(tmp_path: Path) -> None:
    """An index tells by one bit of a word whether a total is null: these need three words."""
    names = [f"t_{number}" for number in range(130)]
    table = KeyedTable(tmp_path / "t", a_pipeline("id", metrics=dict.fromkeys(names, "sum(n)")))
    for offset in range(3):
        table.land([Record(0, offset, {}, {"id": 1, "n": 5})])
    [row] = table.rows()
    assert [row[each] for each in names] == [15] * len(names)


def test_a_sum_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t", a_pipeline("who", metrics={"spent": "sum(n)"}))
    table.land([spending(0, "a", GREATEST), spending(1, "b", 1)])
    with pytest.raises(LeftToSpark):
        table.land([spending(2, "a", 1)])
    with pytest.raises(LeftToSpark):
        table.land([spending(2, "c", -GREATEST), spending(3, "c", -2)])
    table.land([spending(2, "a", 1), spending(3, "a", -1), spending(4, "b", 1)])
    assert {row["who"]: row["spent"] for row in table.rows()} == {"a": GREATEST, "b": 2}


def test_a_sum_of_decimals_that_is_one_digit_too_long_does_not_fit(tmp_path: Path) -> None:
    """Its column is a DECIMAL(37,2)."""
    table = KeyedTable(tmp_path / "t", a_pipeline("id", metrics={"wide": "sum(w)"}))
    half = {"id": 1, "w": 5e34}
    table.land([Record(0, 0, {}, half)])
    with pytest.raises(LeftToSpark):
        table.land([Record(0, 1, {}, half)])
    [row] = table.rows()
    assert row["wide"] == Decimal(5 * 10**34)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("sum(w)", ""),
        ("max(day)", ""),
        ("min(who)", "Spark compares STRING for m"),
        ("approx_distinct(who)", "Spark makes the sketch of m"),
    ],
)
def test_what_only_spark_can_make_is_named(metric: str, reason: str) -> None:
    pipeline = a_pipeline("id", metrics={"m": metric})
    assert why_spark(pipeline.target.metrics, pipeline.columns) == reason
