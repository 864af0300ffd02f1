"""Plain text to values of columns, by the rules that JSON has for what is spelt so.

A number is spelt as a JSON number, BOOLEAN as ``true`` or ``false``, and all other types as the
text that they have in JSON.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.columns import ReadAs, refine
from rivermouth.formats.strict_json.decoder import BAD
from rivermouth.formats.strict_json.document import FRAMED
from rivermouth.formats.strict_json.layout import array_of
from rivermouth.formats.strict_json.scalars import JSON_NUMBER, Bad, Number
from rivermouth.formats.strict_json.types import JsonSettings
from rivermouth.formats.strict_json.values import Convert, converter

Reasons = dict[int, str]
"""Why values do not fit, by their places."""


def text_of(values: pa.Array) -> tuple[pa.StringArray, Reasons]:
    """The text of values, null where it is none, and why."""
    given = values.cast(pa.binary())
    try:
        return given.cast(pa.string()), {}
    except pa.ArrowInvalid:
        bad = {at: _NO_TEXT for at, each in enumerate(given.to_pylist()) if not _is_text(each)}
        left = np.zeros(len(given), np.bool_)
        left[[*bad]] = True
        none = pa.scalar(None, pa.binary())
        return pc.if_else(pa.array(left), none, given).cast(pa.string()), bad


_NO_TEXT = "it is not UTF-8"


def bad(values: pa.Array, faults: Reasons) -> dict[int, tuple[str, str]]:
    """Code and reason of these values; of those that look framed the reason says that."""
    framed = {at for at in faults if values[at].as_py().startswith(b"\0")}
    return {at: (BAD, FRAMED if at in framed else why) for at, why in faults.items()}


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def column_of(
    texts: pa.StringArray, kind: pa.DataType, settings: JsonSettings
) -> tuple[pa.Array, Reasons]:
    """The column, null where the text is null and where it does not fit. ``kind`` is primitive."""
    if pa.types.is_string(kind):
        return texts, {}
    read = ReadAs(settings.unit is not None, wide=False).kind(kind)
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    values, fits = _at_once(texts, read, there)
    found = refine(values, kind, settings.unit)
    left = there & ~fits
    if found.doubtful is not None:
        left |= there & found.doubtful
    if not left.any():
        return found.array, {}
    return _with_exact(found.array, texts, left, partial(_exactly, converter(kind, settings)))


def _at_once(
    texts: pa.StringArray, read: pa.DataType, there: np.ndarray
) -> tuple[pa.Array, np.ndarray]:
    """The values that surely fit, as ``ReadAs`` has them, and which these are."""
    if pa.types.is_string(read):
        return texts, there
    some = there.copy()
    some &= pc.fill_null(pc.binary_length(texts), 0).to_numpy() > 0
    values, fits = array_of(texts.filter(pa.array(some)), read, quoted=False)
    assert values is not None
    whole = np.zeros(len(texts), np.bool_)
    whole[some] = fits & values.is_valid().to_numpy(zero_copy_only=False)
    places = np.zeros(len(texts), np.int64)
    places[some] = np.arange(np.count_nonzero(some))
    return values.take(pa.array(places, mask=~whole)), whole


def _with_exact(
    values: pa.Array, texts: pa.StringArray, left: np.ndarray, convert: Convert
) -> tuple[pa.Array, Reasons]:
    places, reasons, found = np.flatnonzero(left), Reasons(), []
    for at in places.tolist():
        try:
            found.append(convert(texts[at].as_py()))
        except Bad as bad:
            found.append(None)
            reasons[at] = bad.reason
    of = np.arange(len(values))
    of[places] = len(values) + np.arange(len(places))
    return pa.concat_arrays([values, pa.array(found, values.type)]).take(pa.array(of)), reasons


_TRUTH = {"true": True, "false": False}


def _exactly(convert: Convert, text: str) -> object:
    """The value of one text. Raises Bad."""
    return convert(_TRUTH.get(text, Number(text) if JSON_NUMBER.fullmatch(text) else text))
