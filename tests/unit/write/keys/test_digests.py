"""Digests of keys: equal for equal keys alone."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.write.keys.runs import digests, width_of

pytestmark = pytest.mark.unit

LEAST, GREATEST = -(2**63), 2**63 - 1
AT = datetime(2026, 1, 2, tzinfo=timezone.utc)


def words(*columns: pa.Array) -> list[tuple[int, ...]]:
    return [tuple(each) for each in digests(columns).tolist()]


def test_a_whole_number_is_its_own_digest_in_the_order_of_the_numbers() -> None:
    numbers = [LEAST, -1, 0, 1, GREATEST]
    found = words(pa.array(numbers, pa.int64()))
    assert found == sorted(set(found))
    assert {len(each) for each in found} == {1}
    assert words(pa.array([5], pa.int8())) == words(pa.array([5], pa.int64()))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["", "a", "ä", "a\0", "ab"]),
        (pa.binary(), [b"", b"a", b"\xff"]),
        (pa.bool_(), [True, False]),
        (pa.date32(), [date(2026, 1, 1), date(1969, 1, 1)]),
        (pa.timestamp("us", "UTC"), [AT, AT.replace(microsecond=1)]),
        (pa.decimal128(12, 2), [Decimal("1.00"), Decimal("-1.00"), Decimal("9999999999.99")]),
    ],
)
def test_each_value_of_a_type_has_its_own_digest(kind: pa.DataType, values: list[Any]) -> None:
    every = pa.array([*values, *values], kind)
    found = words(every)
    assert width_of([kind]) == len(found[0]) == 2
    assert len(set(found)) == len(values)
    assert found[: len(values)] == found[len(values) :]
    assert words(every.slice(1)) == found[1:], "whatever part of an array they are"


def test_large_texts_and_other_decimals_are_the_same_keys() -> None:
    assert words(pa.array(["a"], pa.large_string())) == words(pa.array(["a"]))
    one = Decimal("1.00")
    small, large = (pa.array([one], pa.decimal128(each, 2)) for each in (5, 30))
    assert words(small) == words(large)


Part = st.one_of(st.none(), st.text(max_size=3))


@given(st.lists(st.tuples(Part, Part, st.one_of(st.none(), st.integers(0, 300)))))
def test_keys_of_several_parts_share_a_digest_if_all_parts_are_equal(
    keys: list[tuple[str | None, str | None, int | None]],
) -> None:
    columns = [pa.array([each[at] for each in keys], kind) for at, kind in enumerate(KINDS)]
    found = words(*columns)
    assert len(set(found)) == len(set(keys))
    assert len(set(zip(found, keys, strict=True))) == len(set(keys))


KINDS = (pa.string(), pa.string(), pa.int32())


def test_no_keys_have_no_digests() -> None:
    assert digests([pa.array([], pa.int64())]).shape == (0, 1)
    assert digests([pa.array([], pa.string())]).shape == (0, 2)
    assert digests([pa.array([], pa.string())]).dtype == np.uint64
