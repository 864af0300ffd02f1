"""The compiled parser: pyarrow's, with the types that it reads exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.json

_ROW = re.compile(r"JSON parse error:.* in row ([0-9]+)", re.DOTALL)
WIDE = pa.decimal256(38, 38)


class Unreadable(Exception):
    """The parser did not read all records.

    ``row`` is the first that it cannot parse; all before it can be parsed. It is None if the parser
    does not say where it failed, or if ``parsed``: all can be parsed, but a number does not fit.
    """

    def __init__(self, row: int | None, parsed: bool) -> None:
        super().__init__(row, parsed)
        self.row = row
        self.parsed = parsed


@dataclass(frozen=True)
class ReadAs:
    """How the parser reads the columns. ``numbers``: a TIMESTAMP is a number.

    ``wide``: whole numbers and decimals with all their digits, up to 38 of them on either side of
    the point, so that hardly a record makes the conversion of all fail.
    """

    numbers: bool
    wide: bool

    def kind(self, kind: pa.DataType) -> pa.DataType:
        """The type as which the parser reads a column; ``refine`` makes ``kind`` of it."""
        if pa.types.is_struct(kind):
            return pa.struct([(each.name, self.kind(each.type)) for each in kind])
        if pa.types.is_list(kind):
            return pa.list_(self.kind(kind.value_type))
        if self.wide and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
            return WIDE
        if pa.types.is_decimal(kind):
            # The parser refuses more than 38 digits, but does not see when moving the point makes
            # the value overflow. In 256 bits it cannot.
            return pa.decimal256(38, kind.scale)
        if pa.types.is_timestamp(kind) and kind.tz and self.numbers:
            return pa.int64()
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind):
            return pa.string()
        return kind


def parse(documents: pa.Buffer, count: int, schema: pa.Schema) -> pa.StructArray:
    """So many documents to rows of the schema. Raises Unreadable for what cannot be parsed."""
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(documents),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=documents.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException as fault:
        found = _ROW.fullmatch(str(fault))
        parsed = not str(fault).startswith("JSON parse error")
        raise Unreadable(int(found[1]) if found else None, parsed) from None
    if len(table) != count:
        raise Unreadable(None, parsed=False)
    columns = [each.combine_chunks() for each in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(schema))
