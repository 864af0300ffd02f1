"""Totals and first rows on a real broker: what runs write is proved, what is spoilt is found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.verification import Kind, PipelineProof, Unchecked, verify
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

LARGE = (1 << 63) - 10
METRICS = {
    "spent": "sum(price)",
    "units": "sum(unit)",
    "n": "count()",
    "with_at": "count(at)",
    "first": "min(at)",
    "best": "max(price)",
    "buyers": "approx_distinct(buyer)",
    "kinds": "approx_distinct(unit)",
}
TARGETS: dict[str, dict[str, Any]] = {
    "totals": {"mode": "aggregate", "keys": ["id", "window(at, '1 hour')"], "metrics": METRICS},
    "plain": {
        "mode": "aggregate",
        "keys": ["id"],
        "metrics": {"units": "sum(unit)", "n": "count()"},
    },
    "firsts": {"mode": "insert", "keys": ["id"]},
}
SCHEMA = "id INT, at TIMESTAMP, price DECIMAL(30,2), unit BIGINT, buyer STRING"


def pipeline(topic: str, name: str) -> dict[str, Any]:
    return {
        "source": {"topics": [topic], "format": "json"},
        "schema": SCHEMA,
        "target": {"table": f"gold.{name}", **TARGETS[name]},
    }


def value(id_: int | None, minute: int | None, price: str | None, unit: Any, buyer: Any) -> bytes:
    at = None if minute is None else f"1969-12-31T{22 + minute // 60}:{minute % 60:02d}:00Z"
    facts = {"id": id_, "at": at, "price": price, "unit": unit, "buyer": buyer}
    return json.dumps(facts).encode()


def records() -> list[tuple[bytes | None, bytes | None, int]]:
    """Records of all kinds: good ones, bad ones, and some that make a sum too large."""
    found: list[tuple[bytes | None, bytes | None, int]] = []
    for n in range(120):
        price = None if n % 7 == 0 else f"{n - 50}.{n % 100:02d}"
        buyer = None if n % 11 == 0 else f"b{n % 13}"
        found.append((None, value(n % 5, n % 119, price, n % 4 or None, buyer), n % 2))
    for at in (7, 90):
        found.insert(at, (None, value(9, 5, "1", LARGE, ""), 0))  # each alone fits
    found.insert(20, (None, b"?", 0))
    found.insert(21, (None, None, 1))
    found.insert(60, (None, value(None, 1, "1", 1, "x"), 0))
    found.insert(61, (None, value(1, None, "1", 1, "x"), 1))  # bad where the time is a key
    return found


def proofs(lake: Lake) -> dict[str, PipelineProof]:
    found = verify(lake.configure(**{name: pipeline("totals", name) for name in TARGETS}))
    return {each.name: each for each in found.pipelines}


@pytest.mark.thorough
def test_totals_and_first_rows_are_proved_and_what_is_spoilt_is_found(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("totals", 2)
    config = lake.configure(**{name: pipeline("totals", name) for name in TARGETS})
    written = records()
    for part in (written[:70], written[70:]):
        lake.produce("totals", part)
        for name in config.pipelines:
            [end] = lake.run(rivermouth_spark, name).ends
            assert end.error is None, end.error

    found = proofs(lake)
    for name, proof in found.items():
        assert (proof.problems, proof.unchecked) == ((), ()), name
        assert proof.ok
        assert proof.records == len(written)
    assert found["totals"].quarantined == 5, "the second record of key 9 would not fit"
    assert found["firsts"].repeated == len(written) - 3 - 6

    spark, folder = rivermouth_spark, lake.warehouse / "gold"
    spark.sql(f"UPDATE delta.`{folder / 'totals'}` SET spent = spent + 0.01 WHERE id = 3")
    spark.sql(f"DELETE FROM delta.`{folder / 'plain'}` WHERE id = 4")
    spark.sql(f"UPDATE delta.`{folder / 'firsts'}` SET price = price + 1 WHERE id = 2")
    spoilt = {name: _found(proof) for name, proof in proofs(lake).items()}
    assert spoilt == {
        "totals": {Kind.DIFFERENT: 2},  # a row for each hour
        "plain": {Kind.MISSING: 1},
        "firsts": {Kind.DIFFERENT: 1},
    }


def _found(proof: PipelineProof) -> dict[Kind, int]:
    assert Unchecked.KEYS not in proof.left
    return {kind: number for kind, number in proof.counts.items() if number}
