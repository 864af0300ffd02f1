"""Lines of CSV: one record each, its fields in the order of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded
from rivermouth.formats.strict_json.types import JsonSettings, schema_of, settings_of
from rivermouth.formats.text import Reasons, bad, column_of, text_of

_QUOTE = '"'


@dataclass(frozen=True)
class Csv:
    """Decodes lines by RFC 4180, without a header; a line break may end one.

    ``null_value`` is the text of a field that is null, if it is not in quotes.
    """

    schema: pa.Schema
    settings: JsonSettings
    delimiter: str = ","
    null_value: str = ""

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        texts, faults = text_of(values)
        texts = pc.utf8_rtrim(texts, "\r\n") if len(texts) else texts
        fields, more = self._fields(texts)
        faults |= more
        columns = []
        for at, field in enumerate(self.schema):
            column, unfit = column_of(fields[at], field.type, self.settings)
            columns.append(column)
            for record, why in unfit.items():
                faults.setdefault(record, f"{field.name}: {why}")
        rows = pa.StructArray.from_arrays(columns, fields=list(self.schema), mask=texts.is_null())
        none = pa.nulls(len(values), pa.string())
        return Decoded(rows, none, none).with_faults(bad(values, faults))

    def _fields(self, texts: pa.StringArray) -> tuple[list[pa.StringArray], Reasons]:
        """The fields of all records, column by column; null for bad records."""
        count, wanted = len(texts), len(self.schema)
        parts = pc.split_pattern(texts, self.delimiter)
        lengths = pc.list_value_length(parts).fill_null(0).to_numpy()
        simple = ~pc.match_substring_regex(texts, r'["\r\n]').fill_null(True).to_numpy(
            zero_copy_only=False
        )
        plain = np.flatnonzero(simple & (lengths == wanted))
        whole = parts.take(pa.array(plain)).flatten()
        matrix = np.arange(len(plain) * wanted).reshape(-1, wanted)
        slow, faults = self._one_by_one(texts, np.flatnonzero(~simple | (lengths != wanted)))
        places = np.zeros(count, np.int64)
        places[plain] = np.arange(len(plain))
        found = []
        for at in range(wanted):
            column = self._nulls(whole.take(pa.array(matrix[:, at])))
            extra = pa.array([each[at] for each in slow.values()], pa.string())
            for number, record in enumerate(slow):
                places[record] = len(plain) + number
            none = np.ones(count, np.bool_)
            none[plain] = False
            none[[*slow]] = False
            both = pa.concat_arrays([column, extra])
            found.append(both.take(pa.array(places, mask=none)))
        return found, faults

    def _nulls(self, column: pa.StringArray) -> pa.StringArray:
        return pc.if_else(pc.equal(column, self.null_value), pa.scalar(None, pa.string()), column)

    def _one_by_one(
        self, texts: pa.StringArray, records: np.ndarray
    ) -> tuple[dict[int, list[str | None]], Reasons]:
        good: dict[int, list[str | None]] = {}
        faults: Reasons = {}
        for at in records.tolist():
            text = texts[at].as_py()
            if text is None:
                continue
            found = fields_of(text, self.delimiter, self.null_value)
            if found is None:
                faults[at] = "it is not one line of CSV"
            elif len(found) != len(self.schema):
                faults[at] = f"{len(found)} fields, where {len(self.schema)} are expected"
            else:
                good[at] = found
        return good, faults


def fields_of(text: str, delimiter: str, null: str) -> list[str | None] | None:
    """The fields of one line; None where it does not follow RFC 4180."""
    fields: list[str | None] = []
    at = 0
    while True:
        if text.startswith(_QUOTE, at):
            end = at + 1
            while (end := text.find(_QUOTE, end)) >= 0 and text.startswith(_QUOTE, end + 1):
                end += 2
            if end < 0:
                return None
            fields.append(text[at + 1 : end].replace('""', _QUOTE))
            at = end + 1
        else:
            end = text.find(delimiter, at)
            end = len(text) if end < 0 else end
            field = text[at:end]
            if any(each in field for each in '"\r\n'):
                return None
            fields.append(None if field == null else field)
            at = end
        if at == len(text):
            return fields
        if not text.startswith(delimiter, at):
            return None
        at += len(delimiter)


def decoder(columns: Sequence[Column], settings: Mapping[str, Any]) -> Csv:
    """What decodes values of ``csv``."""
    given = settings.get("csv", {})
    options = {key: str(given[key]) for key in ("delimiter", "null_value") if key in given}
    return Csv(schema_of(columns), settings_of(settings), **options)
