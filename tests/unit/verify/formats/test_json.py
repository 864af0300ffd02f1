"""JSON objects read by the schema of the table; see ``test_json_values`` for single values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermouth.verify.formats.from_json.reader import reader
from rivermouth.verify.formats.from_json.text import parse_object
from rivermouth.verify.formats.reader import Undecodable

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])


def test_the_wanted_columns_come_in_their_order_and_absent_ones_are_none() -> None:
    assert reader(SCHEMA, ["b", "a", "c"])(b'{"x":1,"a":7,"b":"t","c":null}') == ("t", 7, None)
    assert reader(SCHEMA, [])(b"{}") == ()


@pytest.mark.parametrize("value", [b"", b"[1]", b"null", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(value: bytes) -> None:
    with pytest.raises(Undecodable):
        reader(SCHEMA, ["a"])(value)


def test_the_last_of_a_name_twice_wins_and_what_follows_the_object_is_ignored() -> None:
    assert parse_object(b' {"a":1,"a":2} rest') == [("a", 1), ("a", 2)]
    assert reader(SCHEMA, ["a"])(b' {"a":1,"a":2} rest') == (2,)
    assert reader(SCHEMA, ["a"])(b'{"a":1,"a":null}') == (None,)
    with pytest.raises(Undecodable):
        reader(SCHEMA, ["a"])(b'{"a":"x","a":2}')


def test_a_column_of_a_type_that_json_does_not_hold_is_refused_at_once() -> None:
    with pytest.raises(Undecodable, match="a column of type duration"):
        reader(pa.schema([("d", pa.duration("us"))]), ["d"])
