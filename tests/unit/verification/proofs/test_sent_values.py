"""Fingerprints of values: equal for equal values, and which values JSON may change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verification.formats.reader import NOT_VERIFIABLE
from rivermouth.verification.proofs.sent_records import UNREAD, fingerprint, may_change

pytestmark = pytest.mark.unit

TIME = pa.timestamp("us", tz="UTC")
NESTED = pa.struct([("at", pa.list_(TIME))])
MILLENNIUM = 253_402_300_800_000_000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (Decimal("0.00"), Decimal("-0.00")),
        ([{"a": -0.0}], [{"a": 0.0}]),
        ([("k", Decimal("-0"))], [("k", Decimal("0"))]),
    ],
)
def test_the_sign_of_a_zero_makes_no_other_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint((1, one)) == fingerprint((1, other))


def test_other_values_have_other_fingerprints_and_what_cannot_be_told_has_none() -> None:
    values: list[Any] = [None, 1, "1", 1.5, Decimal("1.50"), b"1", True, [1], {"a": 1}]
    assert len({fingerprint((each,)) for each in values}) == len(values)
    assert fingerprint((1, NOT_VERIFIABLE)) == UNREAD


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, TIME, False),
        (1.5, pa.float64(), False),
        (float("nan"), pa.float64(), True),
        (float("-inf"), pa.float32(), True),
        (MILLENNIUM, pa.int64(), False),
        (MILLENNIUM, TIME, True),
        (MILLENNIUM - 1, TIME, False),
        (2_932_896, pa.date32(), False),
        (2_932_897, pa.date32(), True),
        ({"at": [0, MILLENNIUM]}, NESTED, True),
        ({"at": [0, None]}, NESTED, False),
        ([("k", float("inf"))], pa.map_(pa.string(), pa.float64()), True),
        ([("k", 1)], pa.map_(pa.string(), pa.int64()), False),
        (NOT_VERIFIABLE, pa.string(), True),
        ("[]", pa.string(), False),
    ],
)
def test_what_may_change_on_its_way_through_json(
    value: Any, kind: pa.DataType, expected: bool
) -> None:
    assert may_change((value,), (kind,)) is expected
