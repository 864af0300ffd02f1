"""What the compiled parser never sees: it would crash, end early, or take what is not JSON."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.formats.strict_json.chunk import beyond_ascii, joined
from rivermouth.formats.strict_json.guards import as_text, framed, holds_two_objects, safe

pytestmark = pytest.mark.unit


def passes(*values: bytes) -> list[bool]:
    texts, inside = framed(as_text(pa.array(values, pa.binary())))
    passed: list[bool] = (inside & safe(texts, joined(texts))).tolist()
    return passed


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"null", b" null ", b"[]", b"1", b'"x"', b"{", b"}", b'{"a":1', b'"a":1}'),
        *(b"{}null{}", b"{} null {}", b"{}\n\r\t null{}", b'{"a":1}null,{}'),
        *(b"{}\0", b"{\0}", b"\0{}", b'{"a":1}\0}'),
        *(b'{"a":NaN}', b'{"a":-NaN}', b'{"a": Inf}', b'{"a":-Infinity}', b'{"a":[NaN]}'),
        *(
            b'{"a":[1,\tNaN]}',
            b'{"a":"\xff"}',
            b"\xef\xbb\xbf{}",
            b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        ),
    ],
    ids=repr,
)
def test_it_does_not_see(value: bytes) -> None:
    assert passes(value) == [False]
    assert passes(b"{}", value, b"{}") == [True, False, True]


@pytest.mark.parametrize(
    "value",
    [
        *(b"{}", b' {"a":1}\r\n', b'{\n"a": {} }', b'{"a":"NaN"}', b'{"a":"Information"}'),
        *(b'{"a":{},"n":1}', b'{"a":"\xc3\xa9"}', b'{"a":' + b"[" * 499 + b"]" * 499 + b"}"),
    ],
    ids=repr,
)
def test_it_sees(value: bytes) -> None:
    assert passes(value) == [True]
    assert passes(b"{}", value, b"{}") == [True, True, True]


def test_two_objects_in_one_record_are_found() -> None:
    texts = pa.array(["{}", '{"a":{}}', "{}{}", "{}\r\n\t {}", '{"a":"}{"}'])
    assert holds_two_objects(texts).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize(
    "values",
    [
        (b"{}\xc3", b""),
        (b"{}\xc3", b"", b""),
        (b"", b"{}", b"", b"\xc3", b""),
        (b"\xc3\xa9", b"\xff", b"", b"{}"),
    ],
)
def test_what_is_not_utf8_is_found_beside_empty_values(
    values: tuple[bytes, ...], kind: pa.DataType
) -> None:
    expected = [each if each.decode(errors="ignore").encode() == each else b"" for each in values]
    # A slice, too: it begins amid the bytes of the whole.
    for given in (pa.array(values, kind), pa.array([b"\xff", *values, b"\xff"], kind)[1:-1]):
        assert [each.encode() for each in as_text(given).to_pylist()] == expected


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17])
def test_each_byte_beyond_ascii_is_found(length: int) -> None:
    assert places(np.full(length, 0x7F, np.uint8)) == []
    assert places(np.full(length, 0x80, np.uint8)) == [*range(length)]
    for place in range(length):
        codes = np.zeros(length + 1, np.uint8)[1:]  # begins amid a word
        codes[place] = 0xFF
        assert places(codes) == [place]


def places(codes: np.ndarray) -> list[int]:
    found = beyond_ascii(codes, most=100)
    assert found is not None
    return [int(each) for each in found]


def test_many_bytes_beyond_ascii_are_not_told_one_by_one() -> None:
    """For each of them that would take 16 bytes of memory and more."""
    text = "Ж" * 1_000
    values = pa.array([text.encode()] * 5_000 + [b"\xff"], pa.binary())
    tracemalloc.start()
    try:
        assert as_text(values)[-1].as_py() == ""
        assert tracemalloc.get_traced_memory()[1] < 3 * values.nbytes
    finally:
        tracemalloc.stop()
