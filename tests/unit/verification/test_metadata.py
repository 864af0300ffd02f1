"""Message keys and headers: what rows must hold, by the record and by its entry."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from rivermouth.verification.formats.reader import NOT_VERIFIABLE
from rivermouth.verification.ledger.entry import LedgerEntry
from rivermouth.verification.proofs.decoding import Comparison, decoded_key, differences
from rivermouth.verification.subject import Metadata
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import KAFKA

pytestmark = pytest.mark.unit

BOTH = ("key", "headers")
HEADERS = [("a", b"1"), ("b", None), ("a", b"")]
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
WITH_BOTH = pa.struct([*KAFKA, ("key", pa.binary()), ("headers", PAIRS)])


def entry(*metadata: str) -> LedgerEntry:
    bare = LedgerEntry(0, 1, "id", "cluster", {}, (), {}, ())
    return replace(bare, metadata=metadata)


def record(key: bytes | None = None, headers: Any = None) -> Message:
    return Message(topic="t", partition=0, offset=0, key=key, value=b"{}", headers=headers)


@pytest.mark.parametrize(
    ("key", "headers", "told"),
    [
        (None, None, (None, None)),
        (b"", [], (b"", None)),  # no record has an empty list
        (b"\xff", HEADERS, (b"\xff", tuple(HEADERS))),
    ],
)
def test_what_a_row_must_hold_is_what_its_entry_tells_of_the_record(
    key: bytes | None, headers: Any, told: tuple[Any, ...]
) -> None:
    found = Metadata(BOTH, [entry(), entry("key"), entry(*BOTH)])
    message = record(key, headers)
    assert found.of_record(0, message) == (None, None)
    assert found.of_record(1, message) == (told[0], None)
    assert found.of_record(2, message) == told
    assert Metadata(["headers"], [entry(*BOTH)]).of_record(0, message) == told[1:]
    assert Metadata([], [entry(*BOTH)]).of_record(0, message) == ()


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({"key": None, "headers": None}, (None, None)),
        ({"key": b"", "headers": []}, (b"", ())),
        ({"key": b"k", "headers": [None]}, (b"k", (None,))),
        ({"key": b"", "headers": [{"key": "a\0b", "value": None}]}, (b"", (("a", None),))),
        (
            {"key": b"k", "headers": [{"key": name, "value": value} for name, value in HEADERS]},
            (b"k", tuple(HEADERS)),
        ),
    ],
)
def test_absent_and_empty_are_not_the_same_in_a_row(
    held: dict[str, Any], told: tuple[Any, ...]
) -> None:
    batch = pa.RecordBatch.from_pydict({"_kafka": pa.array([held], WITH_BOTH)})
    assert Metadata(BOTH, []).of_rows(batch) == [told]
    assert Metadata([], []).of_rows(batch) == [()]


def test_a_table_without_a_field_is_not_verified() -> None:
    Metadata([], []).require(pa.schema([("_kafka", KAFKA)]))
    Metadata(BOTH, []).require(pa.schema([("_kafka", WITH_BOTH)]))
    with pytest.raises(Unreadable, match=r"_kafka\.key, _kafka\.headers"):
        Metadata(BOTH, []).require(pa.schema([("_kafka", KAFKA)]))


class Strange:
    """A record with a header whose name is not UTF-8."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def headers(self) -> None:
        raise self._fault


@pytest.mark.parametrize(
    "fault", [SystemError(), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")]
)
def test_headers_that_the_client_cannot_name_are_counted_and_not_compared(
    fault: Exception,
) -> None:
    message: Any = Strange(fault)
    found = Metadata(["headers"], [entry("headers")]).of_record(0, message)
    [told] = pickle.loads(pickle.dumps(found))
    assert told is NOT_VERIFIABLE
    comparison = Comparison(["a"], ["headers"])
    assert comparison.differences(tuple, b"\x01", (5, told), (1, 5, (("\ufffd", b""),))) == ""
    assert comparison.unknown == 1


def test_a_row_is_compared_with_its_metadata() -> None:
    comparison = Comparison(["a"], BOTH)
    due = (5, b"k", tuple(HEADERS))
    assert comparison.differences(tuple, b"\x01", due, (1, *due)) == ""
    reverse = (5, b"", due[2][::-1])
    found = comparison.differences(tuple, b"\x01", due, (1, *reverse))
    assert found == "other values in _kafka.key, _kafka.headers"


def test_differences_are_named_and_nan_is_itself() -> None:
    one, other = float("nan"), float("-nan")
    assert differences(["a", "b", "c"], (1, one, NOT_VERIFIABLE), (2, other, "x")) == (
        "other values in a"
    )
    assert differences(["a", "b"], (1, 2), (None, 3)) == "other values in a, b"


def test_a_message_key_may_be_empty() -> None:
    assert decoded_key(tuple, b"") == ()
