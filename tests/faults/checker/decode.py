"""What a record should become: a row, the deletion of one, nothing, or a bad record.

Valid is what docs/json.md, docs/records.md and docs/cdc.md say, without any leniency, for columns
of whole numbers and of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

from tests.faults.checker.evidence import Watched
from tests.faults.checker.forms import avro, protobuf

_DEPTH = 500
_LIMIT = 1 << 63
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_WHOLE = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)


class Kind(IntEnum):
    """What a record is."""

    GOOD = 0
    TOMBSTONE = 1
    GONE = 2
    """An event that deletes a row, ordered as rows are."""
    BAD = 3
    SKIPPED = 4


class Judged(NamedTuple):
    """A record as judged; ``values`` of all columns, ``keys`` of the key columns."""

    kind: Kind
    values: tuple[Any, ...] | None = None
    keys: tuple[Any, ...] | None = None


_BINARY = {"avro": avro, "protobuf": protobuf}
BAD, SKIPPED = Judged(Kind.BAD), Judged(Kind.SKIPPED)


class Decoder:
    """Judges the records of one pipeline."""

    def __init__(self, watched: Watched) -> None:
        self._columns = watched.columns
        self._form = watched.form
        self._format = watched.key_format
        names = [name for name, _ in watched.columns]
        self._key_names = watched.keys
        self._keys = [names.index(each) for each in watched.keys]
        self._order = [names.index(each) for each in watched.order_by]

    def judge(self, key: bytes | None, value: bytes | None) -> Judged:
        """Judge one record."""
        if value is None and self._format is not None:
            return self._tombstone(key)
        if value is None and (not self._keys or self._form == "debezium"):
            return SKIPPED
        try:
            kind, whole = self._read(value or b"")
            values = tuple(_fit(whole.get(name), type_) for name, type_ in self._columns)
        except ValueError:
            return BAD
        keys = tuple(values[index] for index in self._keys)
        return BAD if None in keys else Judged(kind, values, keys)

    def _read(self, value: bytes) -> tuple[Kind, Mapping[str, Any]]:
        """What a value says. Raises ValueError."""
        if self._form == "debezium":
            return self._event(value)
        if self._form in _BINARY:
            if not value:
                raise ValueError("nothing")
            return Kind.GOOD, _BINARY[self._form](value, self._columns)
        return Kind.GOOD, _object(value, [name for name, _ in self._columns])

    def _event(self, value: bytes) -> tuple[Kind, Mapping[str, Any]]:
        """A bare event of a change; ``order_by`` columns stand in its ``source``."""
        whole = _object(value, ["op", "before", "after", "source"])
        gone = whole.get("op") == "d"
        if not gone and whole.get("op") not in ("c", "r", "u"):
            raise ValueError("no event")
        row, source = whole.get("before" if gone else "after"), whole.get("source")
        if not isinstance(row, _Object) or not isinstance(source, _Object):
            raise ValueError("no row")
        names = [self._columns[index][0] for index in self._order]
        placed = {name: dict(source).get(name) for name in names}
        told = {name: each for name, each in row if not gone or name in self._key_names}
        return Kind.GONE if gone else Kind.GOOD, {**told, **placed}

    def order(self, judged: Judged) -> bytes:
        """The ``order_by`` values as bytes that compare as the values do; null is lowest."""
        values = judged.values or ()
        return b"".join(_sortable(values[index]) for index in self._order) if values else b""

    def _tombstone(self, key: bytes | None) -> Judged:
        kinds = [self._columns[index] for index in self._keys]
        try:
            keys = tuple(_named(key, self._format, kinds))
        except ValueError:
            return BAD
        return BAD if None in keys else Judged(Kind.TOMBSTONE, None, keys)


def _named(
    key: bytes | None, form: str | None, columns: Sequence[tuple[str, str]]
) -> Iterable[Any]:
    """The key columns that a message key names. Raises ValueError where it names none."""
    if key is None:
        raise ValueError("no message key")
    if form == "json":
        whole = _object(key, [name for name, _ in columns])
        return [_fit(whole.get(name), kind) for name, kind in columns]
    [(_, kind)] = columns
    if form == "long" and len(key) != 8:
        raise ValueError("not eight bytes")
    text = str(int.from_bytes(key, "big", signed=True)) if form == "long" else key.decode()
    if kind == "STRING":
        return [text]
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a whole number")
    return [_bigint(int(text))]


class _Object(list[tuple[str, Any]]):
    """The members of an object as they stand there."""


def _object(value: bytes, columns: Iterable[str]) -> dict[str, Any]:
    """The JSON object that a value is. Raises ValueError where it is none by the rules."""
    text = value.decode()
    try:
        members = _JSON.decode(text)
        if "\\u" in text:  # no half of a pair
            json.dumps(members, ensure_ascii=False, default=str).encode()
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(members, _Object):
        raise ValueError("not an object")
    if text.count("{") + text.count("[") > _DEPTH and _depth(text) > _DEPTH:
        raise ValueError("too deep")
    names = [name for name, _ in members]
    if any(names.count(each) > 1 for each in columns):
        raise ValueError("a name twice")
    return dict(members)


def _depth(text: str) -> int:
    """How many objects and arrays of a document stand in each other."""
    bare = _TEXT.sub("", text)
    return max(accumulate(1 if each in "{[" else -1 for each in bare if each in "{[]}"))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_JSON = json.JSONDecoder(
    object_pairs_hook=_Object, parse_constant=_refuse, parse_float=Decimal, parse_int=Decimal
)


def _fit(value: Any, kind: str) -> Any:
    """The value as the column has it. Raises ValueError."""
    if value is None:
        return None
    if kind == "BIGINT":
        if not isinstance(value, Decimal) or value.adjusted() > 20 or value != int(value):
            raise ValueError("not a whole number")
        return _bigint(int(value))
    if not isinstance(value, str):
        raise ValueError("not text")
    return value


def _bigint(value: int) -> int:
    if not -_LIMIT <= value < _LIMIT:
        raise ValueError("not a BIGINT")
    return value


def _sortable(value: Any) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\1" + (value + _LIMIT).to_bytes(8, "big")
    return b"\1" + str(value).encode().replace(b"\0", b"\0\1") + b"\0\0"
