"""What a record should become: a row, the deletion of one, or a bad record.

Valid is one JSON object over the whole value, in UTF-8, no name twice, whose members fit the
columns. Where a reader of JSON may be more lenient than that (text after the object, a name
twice, broken UTF-8, a number for a STRING) the record is GREY: it may be a row or lie in
quarantine, once; as a row it says what a lenient reader makes of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple, NoReturn

from tests.faults.checker.evidence import Watched

_DEPTH = 1000
_LIMIT = 1 << 63
_WHOLE = re.compile(r"\s*[+-]?\d{1,19}\s*", re.ASCII)


class Kind(IntEnum):
    """What a record is."""

    GOOD = 0
    TOMBSTONE = 1
    BAD = 2
    GREY = 3


class Judged(NamedTuple):
    """A record as judged; ``values`` of all columns, ``keys`` of the key columns."""

    kind: Kind
    values: tuple[Any, ...] | None = None
    keys: tuple[Any, ...] | None = None


BAD = Judged(Kind.BAD)


class Decoder:
    """Judges the records of one pipeline."""

    def __init__(self, watched: Watched) -> None:
        self._columns = watched.columns
        self._format = watched.key_format
        names = [name for name, _ in watched.columns]
        self._keys = [names.index(each) for each in watched.keys]
        self._order = [names.index(each) for each in watched.order_by]

    def judge(self, key: bytes | None, value: bytes | None) -> Judged:
        """Judge one record."""
        if value is None and self._format is not None:
            return self._tombstone(key)
        whole, strict = _object(value or b"")
        if whole is None:
            return BAD
        try:
            fitted = [_fit(whole.get(name), kind) for name, kind in self._columns]
        except ValueError:
            return BAD
        values = tuple(each for each, _ in fitted)
        keys = tuple(values[index] for index in self._keys)
        if None in keys:
            return BAD
        strict = strict and all(exact for _, exact in fitted)
        return Judged(Kind.GOOD if strict else Kind.GREY, values, keys)

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
    key: bytes | None, form: str | None, columns: Iterable[tuple[str, str]]
) -> Iterable[Any]:
    """The key columns that a message key names. Raises ValueError where it names none."""
    if key is None:
        raise ValueError("no message key")
    if form == "json":
        whole, _ = _object(key)
        if whole is None:
            raise ValueError("not an object")
        return [_fit(whole.get(name), kind)[0] for name, kind in columns]
    [(_, kind)] = columns
    if form == "long" and len(key) != 8:
        raise ValueError("not eight bytes")
    text = str(int.from_bytes(key, "big", signed=True)) if form == "long" else key.decode()
    if kind == "STRING":
        return [text]
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a whole number")
    return [_bigint(int(text))]


def _object(value: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The JSON object that a value is or begins with, and whether it is nothing else."""
    strict = value.count(b"{") + value.count(b"[") <= _DEPTH
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text, strict = value.decode("utf-8", "replace"), False
    try:
        whole = _STRICT.decode(text)
    except (ValueError, RecursionError):
        strict = False
        try:
            whole, _ = _LENIENT.raw_decode(text.lstrip(" \t\r\n"))
        except (ValueError, RecursionError):
            return None, False
    return (whole, strict) if isinstance(whole, dict) else (None, False)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(members)
    if len(whole) != len(members):
        raise ValueError("a name twice")
    return whole


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)
_LENIENT = json.JSONDecoder()


def _fit(value: Any, kind: str) -> tuple[Any, bool]:
    """The value as the column has it, and whether every reader agrees. Raises ValueError."""
    if value is None:
        return None, True
    if kind == "BIGINT":
        if type(value) is not int:
            raise ValueError("not a whole number")
        return _bigint(value), True
    if not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False), False
    plain = value if value.isascii() else value.encode("utf-8", "replace").decode()
    return plain, plain == value


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
