"""The number of a schema in a header: what decoders get, and what the checker reads instead."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.avro.decoder import decoder
from rivermouth.formats.framing import NOT_FRAMED, by_header
from rivermouth.verification.formats.reader import CannotTell
from rivermouth.verification.kafka.client import with_number

pytestmark = pytest.mark.unit

NAME = "apicurio.value.contentId"
SEVEN = (7).to_bytes(8, "big")
LARGE = (1 << 40).to_bytes(8, "big")
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
FIVE = b"\x0a"

CASES: list[tuple[Any, bytes | None, Any]] = [
    ([(NAME, SEVEN)], FIVE, 5),
    ([("x", None), (NAME, b"?"), (NAME, SEVEN), ("y", b"1")], FIVE, 5),
    ([(NAME, SEVEN), (NAME, b"?")], FIVE, NOT_FRAMED),
    ([(NAME, SEVEN[4:])], FIVE, NOT_FRAMED),
    ([(NAME, LARGE)], FIVE, NOT_FRAMED),
    ([(NAME, None)], FIVE, NOT_FRAMED),
    ([("apicurio.key.contentId", SEVEN)], FIVE, NOT_FRAMED),
    ([], FIVE, NOT_FRAMED),
    (None, FIVE, NOT_FRAMED),
    ([], b"\0\0\0\0\7" + FIVE, NOT_FRAMED),
    ([(NAME, SEVEN)], b"\0\0\0\0\7" + FIVE, "RM603"),
    ([(NAME, SEVEN)], None, None),
    ([], None, None),
    ([], b"", None),
]


def test_the_last_header_names_the_schema() -> None:
    how = decoder(parse_columns("id BIGINT"), {"schemas": {7: json.dumps(SCHEMA)}})
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    values = pa.array([value for _, value, _ in CASES], pa.binary())
    rows = [None if h is None else [{"key": n, "value": v} for n, v in h] for h, *_ in CASES]

    found = by_header("value", how, values, pa.array(rows, kind))

    codes, made = found.codes.to_pylist(), found.rows.to_pylist()
    for (headers, value, due), code, row in zip(CASES, codes, made, strict=True):
        told = due if isinstance(due, str) else None
        assert (code, row) == (told, {"id": due} if isinstance(due, int) else None), headers
        read = with_number("value", value, headers or ())
        named = code != NOT_FRAMED and bool(value)
        assert read == (b"\0" + SEVEN[4:] + (value or b"") if named else read), headers
        assert not value or (read or b"")[0] == (0 if named else 1), headers


def test_headers_that_cannot_be_read_are_told() -> None:
    with pytest.raises(CannotTell):
        with_number("value", b"x", None)
    assert with_number("value", None, None) is None
