"""Arrow batches joined: the same rows in their order, and no more in one batch than is allowed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermouth.formats import arrow as room
from rivermouth.formats.arrow import rebatched

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("value", pa.binary()), ("headers", pa.list_(pa.struct([("k", pa.string())])))])


def batch(sizes: list[int]) -> pa.RecordBatch:
    """A record for each of the sizes, which are bytes of its value."""
    values = [bytes([65 + n % 26]) * n for n in sizes]
    headers = [[{"k": str(n)}] if n % 2 else None for n in sizes]
    return pa.RecordBatch.from_arrays([values, pa.array(headers, SCHEMA[1].type)], schema=SCHEMA)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([[]], [[]], id="one without rows"),
        pytest.param([[], []], [[]], id="two without rows"),
        pytest.param([[1, 2], [], [3]], [[1, 2, 3]], id="one without rows between others"),
        pytest.param([[1, 2], [3, 4], [5]], [[1, 2, 3, 4], [5]], id="as many as fit"),
        pytest.param([[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 5]], id="none is cut"),
        pytest.param([[1] * 6, [2]], [[1] * 6, [2]], id="more records than fit stay as they are"),
        pytest.param([[1], [2] * 6, [3]], [[1], [2] * 6, [3]], id="and so between others"),
        pytest.param([[500], [400], [300]], [[500, 400], [300]], id="as many bytes as fit"),
        pytest.param([[2000], [1], [1]], [[2000], [1, 1]], id="more bytes than fit"),
    ],
)
def test_batches_are_joined_up_to_a_size(
    given: list[list[int]], expected: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_RECORDS", 4)
    monkeypatch.setattr(room, "_BYTES", 1000)

    found = list(rebatched(batch(each) for each in given))

    assert [each.schema for each in found] == [SCHEMA] * len(expected)
    assert found == [batch(each) for each in expected]


def test_a_batch_alone_is_not_copied() -> None:
    given = batch([1, 2])

    (found,) = rebatched([given])

    assert found is given
