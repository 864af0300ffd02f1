"""The exact way: one record after the other, by the letter of the specification."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rivermouth.formats.collector import without_collector
from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.faults import Bad
from rivermouth.formats.strict_json.settings import JsonSettings
from rivermouth.formats.strict_json.values import converter


def decode_one_by_one(
    values: Iterable[bytes], row: pa.StructType, settings: JsonSettings
) -> tuple[pa.StructArray, list[str | None]]:
    """The rows, null for bad records, and for each record why it is bad, if it is."""
    convert = converter(row, settings)
    spelt = "anything_as_text" in settings.lenient
    rows: list[object] = []
    reasons: list[str | None] = []
    with without_collector():
        for value in values:
            try:
                rows.append(convert(read(value, spelt)))
                reasons.append(None)
            except Bad as bad:
                rows.append(None)
                reasons.append(bad.reason)
        return pa.array(rows, row), reasons
