"""Statistics of values that Spark's own writer would not be given in a test: no task may fail."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.warehouse.delta.statistics import Leaf, Statistics

pytestmark = pytest.mark.unit


def told(kind: str, values: pa.Array) -> dict[str, Any]:
    statistics = Statistics((Leaf(("c",), kind),))
    statistics.add(pa.RecordBatch.from_arrays([values], ["c"]))
    found: dict[str, Any] = json.loads(statistics.json(tight=False))
    return found


@pytest.mark.parametrize(
    ("days", "least", "greatest"),
    [
        ([0, 1], {"c": "1970-01-01"}, {"c": "1970-01-02"}),
        ([-719_162, 2_932_896], {"c": "0001-01-01"}, {"c": "9999-12-31"}),
        ([0, 2_932_897], {"c": "1970-01-01"}, {}),
        ([-719_163, 0], {}, {"c": "1970-01-01"}),
        ([-(2**31), 2**31 - 1], {}, {}),
    ],
)
def test_a_date_that_python_does_not_know_is_no_bound(
    days: list[int], least: dict[str, str], greatest: dict[str, str]
) -> None:
    found = told("date", pa.array(days, pa.int32()).view(pa.date32()))
    assert (found["minValues"], found["maxValues"]) == (least, greatest)


@pytest.mark.parametrize("more", [[], [b"b"]])
def test_text_that_is_not_utf8_has_no_bounds(more: list[bytes]) -> None:
    values = pa.array([b"a", b"\xff", *more]).view(pa.string())
    found = told("string", values)
    assert (found["numRecords"], found["minValues"], found["maxValues"]) == (len(values), {}, {})
