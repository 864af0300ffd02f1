"""What Spark is given of keys and tombstones is what a task makes of them."""

from __future__ import annotations

import struct
from itertools import count
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.formats.tasks import decoder_of
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = pytest.mark.spark

VALUES = (
    b'{"order_id": 7, "status": "paid", "rank": 1}',
    b'{"order_id": null, "status": "no key"}',
    b'{"status": "no key"}',
    b"",
    b"{",
    None,
)
NUMBERS = [struct.pack(">q", each) for each in (7, -7, 2**62, -(2**63))]
KEYS: dict[str, list[bytes | None]] = {
    "json": [b'{"order_id": 7}', b'{"order_id": null}', b"{}", b"{", b"", None],
    "string": [b"7", b"text", b"", None],
    "long": [*NUMBERS, b"", b"7", b"\0" * 9, None],
}
ORDERS = "order_id BIGINT, status STRING, rank INT"


def pipeline(form: str | None, key: str = "order_id") -> Pipeline:
    return a_pipeline(key=form, keys=(key,), schema=ORDERS)


CASES = [
    pipeline("json"),
    pipeline("json", "status"),
    pipeline("string"),
    pipeline("string", "status"),
    pipeline("long"),
    pipeline("long", "rank"),
    pipeline(None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda e: f"{e.source.key} {e.target.keys[0]}")
def test_tasks_and_spark_decode_the_same(bench: Bench, case: Pipeline) -> None:
    numbers = count()
    keys = KEYS[case.source.key or "json"]
    rows: list[RawRow] = [(key, value, 0, next(numbers)) for key in keys for value in VALUES]
    by_spark = decoder(case)(bench.raw(rows))
    in_task = decoder_of(case)
    [raw] = bench.raw(rows).toArrow().combine_chunks().to_batches()
    found = in_task(raw).to_pylist()
    expected: list[dict[str, Any]] = by_spark.toArrow().to_pylist()

    assert len(found) == len(rows)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["_kafka"] == theirs["_kafka"]
        assert (ours["code"], ours["tombstone"]) == (theirs["code"], theirs["tombstone"])
        if ours["code"] is None:
            assert ours["key_columns"] == theirs["key_columns"]
            assert ours["tombstone"] or ours["row"] == theirs["row"]
