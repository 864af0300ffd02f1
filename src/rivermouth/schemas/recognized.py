"""What the values of a topic are, by their bytes: JSON, lines, text, bytes, or framed values."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rivermouth.formats.strict_json.scalars import JSON_NUMBER, Bad, Number
from rivermouth.schemas.seen import Seen, document

NEARLY_ALL = 0.9
"""So many of the values have to be alike. Others are taken for bad ones, and are told."""
_LINES, _DELIMITERS = 5, ",;\t|"
"""Text is taken for lines of CSV from so many samples on, which all have as many fields."""
_HEADER = 5


class Kind(Enum):
    """What one value is, in words."""

    OBJECT = "JSON objects"
    ARRAY = "JSON arrays of objects"
    FRAMED_OBJECT = "JSON objects behind the number of a schema"
    FRAMED = "bytes behind a zero byte and a number, as serialisers with a schema registry write"
    BROKEN = "text that begins as JSON and is none"
    TEXT = "text"
    BYTES = "bytes that are no text"
    EMPTY = "empty values"


@dataclass(frozen=True)
class Recognized:
    """The kind of nearly all values, and those of that kind, without what is ahead of them.

    ``documents`` are their objects or arrays, of JSON. ``others`` counts values of other kinds.
    """

    kind: Kind
    values: tuple[bytes, ...]
    documents: tuple[object, ...]
    others: Counter[Kind]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of schemas that framed values name, each once, the smallest first."""
        if self.kind is not Kind.FRAMED:
            return ()
        return tuple(sorted({number_of(each) for each in self.values}))


def number_of(value: bytes) -> int:
    """The number of the schema of a framed value."""
    return int.from_bytes(value[1:_HEADER], "big")


def framed(value: bytes) -> bool:
    """Whether a value begins as framed ones do."""
    return value[:1] == b"\0" and len(value) > _HEADER


def recognize(values: Sequence[bytes]) -> Recognized | str:
    """What the values are, of which there is one at least; or why nobody can tell."""
    found = [_kind(each) for each in values]
    counted = Counter(kind for kind, _ in found)
    kind, count = counted.most_common(1)[0]
    if count < NEARLY_ALL * len(values):
        listed = ", ".join(
            f"{n:,} of {len(values):,} are {of.value}" for of, n in counted.most_common()
        )
        return f"its records have several formats: {listed}"
    if kind in (Kind.BROKEN, Kind.EMPTY):
        return f"its values are {kind.value}{_first_reason(values)}"
    both = zip(values, found, strict=True)
    its = [(value, read) for value, (of, read) in both if of is kind]
    behind = _HEADER if kind is Kind.FRAMED_OBJECT else 0
    del counted[kind]
    return Recognized(
        kind, tuple(v[behind:] for v, _ in its), tuple(read for _, read in its), counted
    )


def _kind(value: bytes) -> tuple[Kind, object]:
    if not value:
        return Kind.EMPTY, None
    if framed(value):
        try:
            return Kind.FRAMED_OBJECT, _object(value[_HEADER:])
        except Bad:
            return Kind.FRAMED, None
    try:
        read = document(value)
    except Bad:
        return _plain(value), None
    if isinstance(read, tuple):
        return Kind.OBJECT, read
    rows = isinstance(read, list) and all(isinstance(each, tuple) for each in read)
    return (Kind.ARRAY, read) if rows else (_plain(value), None)


def _object(value: bytes) -> object:
    read = document(value)
    if not isinstance(read, tuple):
        raise Bad("no object")
    return read


def _plain(value: bytes) -> Kind:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return Kind.BYTES
    if any(not (each.isprintable() or each in "\t\r\n") for each in text):
        return Kind.BYTES
    return Kind.BROKEN if text.lstrip().startswith("{") else Kind.TEXT


def _first_reason(values: Sequence[bytes]) -> str:
    for each in values:
        try:
            document(each)
        except Bad as bad:
            return f": {bad.reason}"
    return ""


@dataclass(frozen=True)
class Lines:
    """Lines of CSV: what stands between their fields, and what each field has."""

    delimiter: str
    fields: tuple[Seen, ...]


def lines_of(values: Sequence[bytes]) -> Lines | None:
    """The values as lines of CSV; None: they are plain text."""
    if len(values) < _LINES:
        return None
    texts = [each.decode("utf-8").rstrip("\r\n") for each in values]
    for delimiter in _DELIMITERS:
        rows = _rows(texts, delimiter)
        lengths = {len(row) for row in rows}
        spaced = any(field[:1] == " " for row in rows for field in row)
        if len(rows) == len(texts) and len(lengths) == 1 and lengths != {1} and not spaced:
            # In quotes nothing is an empty text; the reader does not tell which fields had them.
            empty = any('""' in text for text in texts)
            columns = zip(*rows, strict=True)
            return Lines(delimiter, tuple(_field(each, empty=empty) for each in columns))
    return None


def _rows(texts: Sequence[str], delimiter: str) -> list[list[str]]:
    """The fields of each line; none where a line is no CSV."""
    try:
        return [
            row for text in texts for row in csv.reader([text], delimiter=delimiter, strict=True)
        ]
    except csv.Error:
        return []


def seen_texts(values: Sequence[bytes]) -> Seen:
    """The values as one field."""
    return _field(tuple(each.decode("utf-8") for each in values))


def _field(texts: Sequence[str], *, empty: bool = False) -> Seen:
    """What a field has: what is spelt as in JSON stands for that, nothing for null if not ``empty``
    text may be meant.
    """
    found = Seen()
    for each in texts:
        if JSON_NUMBER.fullmatch(each):
            found.add(Number(each))
        elif each in ("true", "false"):
            found.add(json.loads(each))
        elif each or empty:
            found.add(each)
    return found
