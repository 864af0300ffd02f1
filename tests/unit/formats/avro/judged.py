"""Values of Avro as the decoder and the reader of the checker judge them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from rivermouth.formats.avro.decoder import Avro
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.avro import of_schema
from rivermouth.verification.formats.json_scalars import Settings as CheckerSettings
from tests.unit.formats.judged import Refused, judged_alike

FOREIGN = Refused("RM610")


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
    """See ``judged_alike``. Reading the schema is part of the checker's judgement."""
    its = CheckerSettings(fields=tuple(each.name for each in row), **settings)
    kinds = {each.name: each.type for each in row}
    decoder = Avro(row, Settings(**settings), text)
    return judged_alike(decoder, lambda given: of_schema(text, kinds, its)(given), value)
