"""Values of Avro as the decoder and the reader of the checker judge them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rivermouth.formats.avro.decoder import Avro
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.avro import of_schema
from rivermouth.verification.formats.json_scalars import Settings as CheckerSettings
from rivermouth.verification.formats.reader import Undecodable
from tests.unit.formats.avro.test_decoder import rows_of


@dataclass(frozen=True)
class Refused:
    """In place of a row: the record goes to quarantine with this code."""

    code: str


BAD, FOREIGN, UNFIT = Refused("RM603"), Refused("RM610"), Refused("RM613")


def number(value: int) -> bytes:
    """As ``int`` and ``long`` are written."""
    left, code = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        code.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*code, left])


def record(*fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a record."""
    pairs = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "R", "fields": pairs, **more}


def judged(schema: Any, row: pa.StructType, value: bytes, **settings: Any) -> object:
    """``judged_by`` the text of the schema."""
    return judged_by(json.dumps(schema), row, value, **settings)


def judged_by(text: str, row: pa.StructType, value: bytes, **settings: Any) -> object:
    """The row, or ``Refused``: of the decoder, which also reads the value once more, and a null.

    The checker has to judge the same, or this fails.
    """
    decoder = Avro(row, Settings(**settings), text)
    decoded = decoder.decode(pa.array([value, None, value], pa.binary()))
    decoded.rows.validate(full=True)
    first, null, last = rows_of(decoded.rows)
    assert repr(first) == repr(last)
    assert null is None
    codes = decoded.codes.to_pylist()
    assert codes == [codes[0], None, codes[0]]
    assert (first is None) == (codes[0] is not None), "a row, or a code"
    assert repr(by_checker(text, row, value, **settings)) == repr(first), decoded.reasons[0]
    return first if codes[0] is None else Refused(codes[0])


def by_checker(text: str, row: pa.StructType, value: bytes, **settings: Any) -> object:
    """The row, or None."""
    its = CheckerSettings(fields=tuple(each.name for each in row), **settings)
    try:
        return of_schema(text, {each.name: each.type for each in row}, its)(value)
    except Undecodable:
        return None
