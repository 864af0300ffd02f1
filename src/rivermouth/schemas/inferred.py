"""Columns that take every sample of JSON records, by the rules of docs/json.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from rivermouth.config.columns import OURS
from rivermouth.formats.strict_json.scalars import (
    JSON_NUMBER,
    Bad,
    days,
    decimal,
    double,
    micros,
    parts,
    whole,
)
from rivermouth.schemas.seen import Seen

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORBIDDEN = re.compile(r"[\s,;{}()=.`]")
_SECONDS = (946_684_800, 4_102_444_800)
"""The years 2000 to 2100: a whole number in them may count since 1970."""
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_DAYS = (3_650, 47_482)
_OF_TIMES = {
    *("time", "timestamp", "ts", "at", "date", "datetime", "when", "epoch", "created", "updated"),
    *("modified", "changed", "deleted", "expires", "expiry", "occurred", "received", "sent"),
    *("seen", "started", "ended", "placed", "s", "ms", "us", "ns", "millis", "micros", "nanos"),
}
_OF_DAYS = {"date", "day", "born", "birthday", "birthdate", "due"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Field:
    """A column. ``paths`` is where its value stands, if not in the field of its name; ``wire`` how
    it is written, see ``config.paths``.
    """

    name: str
    type: str
    paths: tuple[str, ...] = ()
    wire: str = ""

    @property
    def sql(self) -> str:
        """As ``schema`` has it."""
        return f"{quoted(self.name)} {self.type}"


@dataclass(frozen=True)
class Inferred:
    """``lenient`` and ``cut`` are what the source has to allow so that all samples are taken, and
    ``notes`` what a person should know of columns.
    """

    fields: tuple[Field, ...]
    lenient: tuple[str, ...] = ()
    cut: bool = False
    notes: tuple[str, ...] = ()


def quoted(name: str) -> str:
    """The name of a column or field in ``schema``."""
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


def sql_of(fields: Sequence[Field]) -> str:
    """The columns as ``schema`` has them, one in a line."""
    return ",\n".join(each.sql for each in fields)


def infer(seen: Seen, *, wires: bool = True, events: bool = False) -> Inferred:
    """The columns of what ``seen`` has, which are objects.

    ``wires``: a column may say how it is written. ``events``: they are rows of a change stream.
    """
    types = _Types(wires=wires, events=events)
    fields = tuple(_columns(seen, types))
    if seen.any_repeated():
        types.lenient.add("repeated_names")
        types.notes.append("some objects have a name twice: the last value counts")
    return Inferred(fields, tuple(sorted(types.lenient)), types.cut, tuple(types.notes))


def infer_lines(fields: Sequence[Seen]) -> Inferred:
    """The columns of lines with these fields, which have no names. A STRING takes any field."""
    types = _Types(wires=False)
    named = [(f"field_{n}", each) for n, each in enumerate(fields, 1)]
    columns = tuple(Field(name, types.of(each, name)) for name, each in named)
    return Inferred(columns, (), types.cut, tuple(types.notes))


def _columns(seen: Seen, types: _Types) -> Iterator[Field]:
    spellings = dict[str, list[str]]()
    for name in seen.members:
        spellings.setdefault(name.lower(), []).append(name)
    taken = {each for each, names in spellings.items() if _is_column(names[0])}
    for lower, names in spellings.items():
        apart = [[each] for each in names] if lower in seen.together else [names]
        for n, group in enumerate(apart):
            usable = [each for each in group if each and "`" not in each]
            if not usable:
                types.notes.append(f"{shown(group[0])}: no column can be of this field; left out")
                continue
            its = Seen()
            for each in usable:
                its.merge(seen.members[each])
            plain = n == 0 and _is_column(usable[0])
            name = usable[0] if plain else _free(usable[0], taken)
            kind, wire = types.column(its, name)
            paths = () if (name,) == tuple(usable) else tuple(map(_path, usable))
            yield Field(name, kind, paths, wire)


def _is_column(name: str) -> bool:
    ours = name.lower() in OURS or name.lower().startswith("_rm_")
    return _fits(name) and not ours


def _fits(name: str) -> bool:
    return bool(name) and name.isprintable() and not _FORBIDDEN.search(name)


def _free(name: str, taken: set[str]) -> str:
    """A name that a column can have, and none has yet."""
    made = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "field"
    first = made if not made[0].isdigit() else f"field_{made}"
    found, number = first, 2
    while found.lower() in taken or not _is_column(found):
        found, number = f"{first}_{number}", number + 1
    taken.add(found.lower())
    return found


def _path(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


def shown(name: str) -> str:
    """A name or path in a message, in one line."""
    return name if name.isprintable() and name else ascii(name)


@dataclass
class _Types:
    """Decides the types, and collects what they need of the source; see ``infer``."""

    wires: bool
    events: bool = False
    lenient: set[str] = field(default_factory=set)
    cut: bool = False
    notes: list[str] = field(default_factory=list)

    def column(self, seen: Seen, name: str) -> tuple[str, str]:
        """The type of a column, and how it is written if not as JSON has it."""
        unit = _unit_of(seen, name) if self.wires else ""
        if unit:
            self._note(name, f"{_UNIT_NAMES[unit]} since 1970{_range(seen, unit)}")
            if unit == "ns" and any(int(str(each)) % 1000 for each in seen.scalars):
                self._cut(name)
            return ("TIMESTAMP_NTZ" if self.events else "TIMESTAMP"), unit
        kind = self.of(seen, name)
        return kind, "plain" if self.events and kind.startswith("DECIMAL") else ""

    def of(self, seen: Seen, path: str) -> str:
        """The type that takes all values that were seen at a path."""
        kinds = seen.kinds
        if seen.deep:
            return self._text(path, "nested too deeply for a type")
        if not kinds:
            return self._text(path, "no sample has a value")
        if len(kinds) > 1:
            return self._text(path, f"{' and '.join(sorted(kinds))} in the samples")
        if seen.objects:
            return self._object(seen, path)
        if seen.arrays:
            return f"ARRAY<{self.of(seen.items or Seen(), f'{path}[]')}>"
        texts = [str(each) for each in seen.scalars]
        if "numbers" in kinds:
            return self._number(texts, seen, path)
        return "BOOLEAN" if "true or false" in kinds else self._string(texts, path)

    def _object(self, seen: Seen, path: str) -> str:
        if not seen.members:
            return self._text(path, "empty objects in all samples")
        if seen.is_map:
            values = Seen()
            for each in seen.members.values():
                values.merge(each)
            self._note(path, f"{len(seen.members)} names in {seen.objects} objects: a map")
            return f"MAP<STRING, {self.of(values, f'{path}{{}}')}>"
        names = [*seen.members]
        if len({each.lower() for each in names}) < len(names):
            return self._text(path, "names that differ in case alone")
        odd = next((each for each in names if not _fits(each)), None)
        if odd is not None:
            return self._text(path, f"the name {shown(odd)} can be none in a STRUCT")
        inner = (
            f"{quoted(name)}: {self.of(each, f'{path}.{name}')}"
            for name, each in seen.members.items()
        )
        return f"STRUCT<{', '.join(inner)}>"

    def _number(self, texts: list[str], seen: Seen, path: str) -> str:
        spelt_whole = all(each.lstrip("-").isdigit() for each in texts)
        if spelt_whole and all(_is_long(each) for each in texts):
            unit = _unit_of(seen, _last(path))
            if unit:
                self._note(path, f"{_UNIT_NAMES[unit]} since 1970{_range(seen, unit)}")
            elif self.events and _has(_OF_DAYS, path) and _within(texts, *_DAYS):
                self._note(path, "may be days since 1970: write DATE if the source has one there")
            return "BIGINT"
        if not spelt_whole and _all(double, texts):
            return "DOUBLE"
        scale = max(map(_scale, texts))
        if scale <= 38 and _all(lambda each: decimal(each, 38, scale), texts):
            self._note(path, "more digits than BIGINT or DOUBLE hold")
            return f"DECIMAL(38,{scale})"
        return self._text(path, "numbers that no type holds")

    def _string(self, texts: list[str], path: str) -> str:
        if _all(days, texts):
            if not self.events:
                return "DATE"
            self._note(path, "dates as text")
        elif _all(lambda each: micros(each, zone=True, cut=True), texts):
            if not _all(lambda each: micros(each, zone=True, cut=False), texts):
                self._cut(path)
            if _all(lambda each: micros(each, zone=False, cut=True), texts):
                self._note(path, "no sample has a zone: taken as UTC")
            return "TIMESTAMP"
        elif all(JSON_NUMBER.fullmatch(each) for each in texts):
            digits = max(len(each.partition(".")[2]) for each in texts)
            after = f" with up to {digits} digits after the point" if digits else ""
            self._note(path, f"text of numbers{after}: DECIMAL(p,s) takes it, too")
        return "STRING"

    def _text(self, path: str, why: str) -> str:
        """A STRING that takes any value, as it is spelt."""
        self.lenient.add("anything_as_text")
        self._note(path, f"{why}: STRING, which takes any value as it is spelt")
        return "STRING"

    def _cut(self, path: str) -> None:
        self.cut = True
        self._note(path, "nanoseconds, which are cut to microseconds")

    def _note(self, path: str, what: str) -> None:
        self.notes.append(f"{shown(path)}: {what}")


def _last(path: str) -> str:
    return re.split(r"[.\[{]", path.removesuffix("[]").removesuffix("{}"))[-1]


def _has(words: set[str], path: str) -> bool:
    found = {each.lower() for each in _WORD.findall(_last(path))}
    return not found.isdisjoint(words)


def _unit_of(seen: Seen, name: str) -> str:
    """What the numbers count since 1970, where name and all values say so; else empty."""
    if seen.kinds != {"numbers"} or not _has(_OF_TIMES, name):
        return ""
    texts = [str(each) for each in seen.scalars]
    least, most = _SECONDS
    fitting = (unit for unit, n in _UNITS.items() if _within(texts, least * n, most * n))
    return next(fitting, "")


def _within(texts: Iterable[str], least: int, most: int) -> bool:
    return all(each.isdigit() and len(each) < 20 and least <= int(each) <= most for each in texts)


def _range(seen: Seen, unit: str) -> str:
    numbers = [int(str(each)) // _UNITS[unit] for each in seen.scalars]
    begin, end = (datetime.fromtimestamp(of(numbers), timezone.utc).date() for of in (min, max))
    return f", {begin} to {end}"


def _is_long(text: str) -> bool:
    found = whole(text)
    return found is not None and -(1 << 63) <= found < 1 << 63


def _scale(text: str) -> int:
    found = parts(text)
    return 0 if found is None else max(0, -found[2])


def _all(read: Callable[[str], object], texts: Iterable[str]) -> bool:
    try:
        for each in texts:
            read(each)
    except Bad:
        return False
    return True
