"""What the compiled parser never sees: it would crash, end early, or take what is not JSON."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermouth.formats.strict_json.chunk import joined
from rivermouth.formats.strict_json.guards import as_text, framed, safe

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
