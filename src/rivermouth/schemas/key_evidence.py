"""Which columns may be the key of rows, and what samples say for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rivermouth.formats.strict_json.scalars import Bad
from rivermouth.schemas.change_events import names_of
from rivermouth.schemas.seen import document

_ENOUGH = 10
"""Fewer samples say nothing by being different."""
_SHOWN = 3
_KINDS = (int, str)


@dataclass(frozen=True)
class Candidate:
    """Columns that may be the key. Of ``count`` samples ``different`` have keys of their own.

    ``form`` is how the record key holds them, as ``source.key`` has it; empty: it does not.
    """

    columns: tuple[str, ...]
    different: int
    count: int
    form: str = ""

    @property
    def evidence(self) -> str:
        """What is said for it, in a line."""
        names = ", ".join(self.columns)
        unique = f"{'unique' if self.different == self.count else 'different'} in"
        equal = ", and equal to the record key in all" if self.form else ""
        return f"{names}: {unique} {self.different:,} of {self.count:,} samples{equal}"


def candidates(rows: Sequence[Mapping[str, Any]], keys: Sequence[bytes | None]) -> list[Candidate]:
    """Those that the record key holds; where it holds none, those that are unique.

    ``rows`` are decoded records, and ``keys`` their record keys.
    """
    if not rows:
        return []
    whole = _whole(rows, keys)
    if whole is not None:
        return [whole]
    found: list[Candidate] = []
    for name, value in rows[0].items():
        values = [each.get(name) for each in rows]
        if isinstance(value, bool) or not all(isinstance(each, _KINDS) for each in values):
            continue
        different, form = len(set(values)), _form(values, keys)
        if form or (different == len(rows) >= _ENOUGH):
            found.append(Candidate((name,), different, len(rows), form))
    held = [each for each in found if each.form]
    return (held or found)[:_SHOWN]


def _form(values: Sequence[Any], keys: Sequence[bytes | None]) -> str:
    """How record keys hold these values; empty: they do not."""
    pairs = [*zip(values, keys, strict=True)]
    if all(key == str(value).encode() for value, key in pairs):
        return "string"
    if all(isinstance(value, int) and key == _eight(value) for value, key in pairs):
        return "long"
    return ""


def _eight(value: int) -> bytes | None:
    return value.to_bytes(8, "big", signed=True) if -(1 << 63) <= value < 1 << 63 else None


def _whole(rows: Sequence[Mapping[str, Any]], keys: Sequence[bytes | None]) -> Candidate | None:
    """The columns that all record keys hold as the fields of an object."""
    found = {key_names(each) for each in keys}
    names = found.pop() if len(found) == 1 else ()
    if not names or any(row.get(each) is None for row in rows for each in names):
        return None
    values = {tuple(row[each] for each in names) for row in rows}
    for row, key in zip(rows, keys, strict=True):
        held = dict(_pairs(key))
        if any(str(row[each]) != str(held[each]) for each in names):
            return None
    return Candidate(names, len(values), len(rows), "json")


def key_names(key: bytes | None) -> tuple[str, ...]:
    """The names of the fields of a record key that is a JSON object; else none."""
    return names_of(_read(key))


def _pairs(key: bytes | None) -> list[tuple[str, object]]:
    members: Any = _read(key)
    inner = dict(members)
    return list(inner["payload"] if set(inner) == {"schema", "payload"} else members)


def _read(key: bytes | None) -> object:
    try:
        return document(key or b"")
    except Bad:
        return None
