"""One record against one row: what is decoded, and which columns are named."""

from __future__ import annotations

import pytest

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, Undecodable
from rivermouth.verify.proofs.decoding import Comparison, decoded, decoded_key, differences

pytestmark = pytest.mark.unit


def read(value: bytes) -> tuple[int, ...]:
    return tuple(value)


def test_differences_are_named_and_nan_is_itself() -> None:
    one, other = float("nan"), float("-nan")
    assert differences(["a", "b", "c"], (1, one, NOT_VERIFIABLE), (2, other, "x")) == (
        "other values in a"
    )
    assert differences(["a"], (1,), (1,)) == ""
    assert differences(["a", "b"], (1, 2), (None, 3)) == "other values in a, b"


def test_a_row_is_compared_with_its_timestamp() -> None:
    comparison = Comparison(["a", "b"])
    assert comparison.differences(read, b"\x01\x02", (9,), (1, 2, 9)) == ""
    found = comparison.differences(read, b"\x01\x02", (9,), (1, 3, 8))
    assert found == "other values in b, _kafka.timestamp"


@pytest.mark.parametrize(("value", "why"), [(None, "null"), (b"", "empty")])
def test_a_value_that_holds_nothing_is_never_given_to_a_reader(
    value: bytes | None, why: str
) -> None:
    with pytest.raises(Undecodable, match=why):
        decoded(read, value)


def test_a_message_key_may_be_empty_but_not_absent() -> None:
    assert decoded_key(read, b"") == ()
    with pytest.raises(Undecodable, match="no message key"):
        decoded_key(read, None)
