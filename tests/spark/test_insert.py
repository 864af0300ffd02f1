"""The first row of a key stays, in both ways in which changes by key land."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from rivermouth.protocol.commits import Outcome
from tests.spark.batch_table import WAYS, keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def value(key: int, status: str) -> bytes:
    return json.dumps({"order_id": key, "status": status, "rank": 0}).encode()


BATCHES: Sequence[Sequence[RawRow]] = [
    [(None, value(1, "a"), 0, 0), (None, value(1, "b"), 0, 1), (None, value(2, "a"), 1, 0)],
    [(None, value(2, "b"), 0, 2), (None, value(3, "a"), 1, 1)],
    [(None, value(1, "c"), 0, 3), (None, b"{oops", 0, 4)],
]
"""The last one changes no row."""


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
def test_the_first_row_of_a_key_stays_and_every_batch_is_a_commit(bench: Bench, way: str) -> None:
    table = keyed_table(bench, a_pipeline(mode="insert", order_by=(), key=None), way)
    for rows in BATCHES:
        assert table.outcome(table.land(rows)) is Outcome.COMMITTED

    found = sorted((row["order_id"], row["status"]) for row in table.rows())
    assert found == [(1, "a"), (2, "a"), (3, "a")]
