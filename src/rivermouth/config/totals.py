"""Totals: the parts of a key, what is measured, the columns that both give, and their rules.

``keys`` of a table of totals are columns of the schema, or a window of time:
``window(at, '1 hour')``. ``metrics`` are named aggregates: ``spent: sum(price)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rivermouth.config.columns import OURS, Column
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked, closest, listed
from rivermouth.config.registry import SHAPES

WINDOW_START = "window_start"
"""The key column of a window: when it begins. It ends one width later, which does not belong."""
SKETCH = "_sketch"
"""How the second column of an approximate count ends: it holds the sketch."""
FUNCTIONS = ("sum", "count", "min", "max", "approx_distinct")

_WINDOW = re.compile(r"\s*window\s*\(\s*([A-Za-z_]\w*)\s*,\s*'([^']*)'\s*\)\s*")
_WIDTH = re.compile(r"\s*([1-9][0-9]{0,5})\s+(second|minute|hour|day|week)s?\s*")
_US = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86_400 * 10**6}
_US["week"] = 7 * _US["day"]
_METRIC = re.compile(r"\s*([A-Za-z_]\w*)\s*\(\s*([A-Za-z_]\w*|\*)?\s*\)\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_DIGITS = 37
"""The most digits of a sum. With one more, Spark would round what it adds."""


@dataclass(frozen=True)
class KeyPart:
    """One key column ``name`` of a table, made from ``column`` of a record.

    ``width_us``: the column is a time, and the part is the latest multiple of so many microseconds
    since 1970-01-01 UTC that is not after it. None: the part is the column itself.
    """

    name: str
    column: str
    width_us: int | None = None


@dataclass(frozen=True)
class Measure:
    """One column ``name`` of totals: a ``function`` of a ``column``; ``count`` may have none."""

    name: str
    function: str
    column: str | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.function}({self.column or ''})"


def key_parts(keys: Sequence[str]) -> tuple[KeyPart, ...]:
    """The key columns in order. Raises ``Refused`` for a window that cannot be read."""
    found: list[KeyPart] = []
    faults: list[Fault] = []
    for index, text in enumerate(keys):
        try:
            found.append(_key_part(text))
        except Refused as refused:
            faults += (_within(index, each) for each in refused.faults)
    return checked(tuple(found), faults)


def check_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys as they are written, each readable. Raises ``Refused``."""
    key_parts(keys)
    return keys


def read_metrics(value: object) -> object:
    """Measures from a mapping of names to texts, or measures as they are; raises ``Refused``."""
    if isinstance(value, tuple) and all(isinstance(each, Measure) for each in value):
        return value
    if not isinstance(value, Mapping):
        message = "{path} must be a mapping of names to aggregates, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=_EXAMPLE))
    found: list[Measure] = []
    faults: list[Fault] = []
    for name, text in value.items():
        try:
            found.append(_measure(name, text))
        except Refused as refused:
            faults += (_within(name, each) for each in refused.faults)
    return checked(tuple(found), faults)


def table_columns(
    schema: Sequence[Column], keys: Sequence[KeyPart], measures: Sequence[Measure]
) -> tuple[Column, ...]:
    """The columns of a table of totals. Raises ``Refused`` where a column has no such total."""
    columns = {each.name: each for each in schema}
    found = [
        columns[each.column] if each.width_us is None else Column(each.name, "TIMESTAMP")
        for each in keys
    ]
    for measure in measures:
        found.append(Column(measure.name, total_type(measure, columns)))
    sketches = [each.name for each in measures if each.function == "approx_distinct"]
    return (*found, *(Column(f"{name}{SKETCH}", "BINARY") for name in sketches))


def total_type(measure: Measure, columns: Mapping[str, Column]) -> str:
    """The type of a total as SQL text. Raises ``Refused`` where the column has no such total."""
    if measure.function in ("count", "approx_distinct"):
        return "BIGINT"
    kind = columns[measure.column or ""].type
    if measure.function in ("min", "max"):
        return kind
    decimal = _DECIMAL.fullmatch(kind)
    return f"DECIMAL({min(int(decimal[1]) + 10, _DIGITS)},{decimal[2]})" if decimal else "BIGINT"


_FIXED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL")


def why_spark(measures: Sequence[Measure], schema: Sequence[Column]) -> str:
    """Why Spark has to make totals, in a clause; empty: it has not."""
    columns = {each.name: each for each in schema}
    for each in measures:
        if each.function == "approx_distinct":
            return f"Spark makes the sketch of {each.name}"
        kind = columns[each.column].kind if each.column else ""
        if each.function in ("min", "max") and kind not in _FIXED:
            return f"Spark compares {kind} for {each.name}"
    return ""


def measure_faults(measure: Measure, columns: Mapping[str, Column]) -> Iterator[Fault]:
    """What is wrong with one measure of these columns."""
    if measure.column is None:
        return
    column = columns.get(measure.column)
    if column is None:
        message = "{path} names {found}, which is not a column of schema"
        suggestion = closest(measure.column, columns)
        fix = "" if suggestion else f"columns: {listed(columns)}"
        yield Fault(Kind.NO_COLUMN, message, measure.column, suggestion, fix, quotes=("schema",))
        return
    fix = _no_total(measure.function, column)
    if fix:
        message = f"{{path}} has no {measure.function} of a column of type {column.kind}"
        yield Fault(Kind.COLUMN_TYPE, message, fix=fix)


def _no_total(function: str, column: Column) -> str:
    """What to do instead where a function does not take a column; empty where it does."""
    if function == "sum" and column.floating:
        return "a sum of rounded numbers depends on their order: declare the column as DECIMAL"
    decimal = _DECIMAL.fullmatch(column.type)
    if function == "sum" and decimal and int(decimal[2]) > _DIGITS:
        return f"declare at most {_DIGITS} digits after the point"
    if function == "sum" and not (decimal or column.integral):
        return "use a column of whole numbers, or DECIMAL"
    if function in ("min", "max") and not column.primitive:
        return "use a column of a primitive type"
    sketched = column.integral or column.kind in ("STRING", "BINARY")
    if function == "approx_distinct" and not sketched:
        return "use a column of whole numbers, STRING or BINARY"
    return ""


_EXAMPLE = "for example metrics: {spent: sum(price), n: count()}"


def _key_part(text: str) -> KeyPart:
    if "(" not in text:
        return KeyPart(text, text)
    window = _WINDOW.fullmatch(text)
    width = _WIDTH.fullmatch(window[2]) if window else None
    if window is None or width is None:
        message = "{path} is {value}, which is neither a column nor a window"
        fix = "write a window as window(at, '1 hour'): seconds, minutes, hours, days or weeks"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=fix))
    return KeyPart(WINDOW_START, window[1], int(width[1]) * _US[width[2]])


def _measure(name: object, text: object) -> Measure:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("_rm_"):
        message = "{path} is no name of a column"
        fix = "use letters, digits and underscores; names that begin with _rm_ are ours"
        raise Refused(Fault(Kind.BAD_COLUMN, message, fix=fix, at_key=True))
    match = _METRIC.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        message = "{path} must be an aggregate of one column, not {value}"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=_EXAMPLE))
    function, column = match[1].lower(), None if match[2] == "*" else match[2]
    if function not in FUNCTIONS:
        message = "{path} uses {found}, which is no aggregate that can be kept exact"
        fix = f"aggregates: {listed(FUNCTIONS)}; an average is a sum divided by a count"
        raise Refused(Fault(Kind.BAD_VALUE, message, match[1], closest(function, FUNCTIONS), fix))
    if column is None and function != "count":
        raise Refused(Fault(Kind.BAD_VALUE, f"{{path}}: {function} needs a column", fix=_EXAMPLE))
    return Measure(name, function, column)


def _within(step: str | int, fault: Fault) -> Fault:
    return replace(fault, path=(step, *fault.path))


Names = tuple[str, ...]
Measures = tuple[Measure, ...]


def need_metrics(mode: str, metrics: Measures) -> Iterator[Fault]:
    """Totals need metrics, and no other mode takes them."""
    totals = SHAPES.by_name[mode].totals
    if totals and not metrics:
        fix = "say what is measured, for example metrics: {n: count()}"
        message = f"{{path}} is mode {mode} without metrics"
        yield Fault(Kind.KEYS_AND_MODE, message, path=("target",), fix=fix)
    if metrics and not totals:
        modes = " or ".join(name for name, shape in SHAPES.by_name.items() if shape.totals)
        message, fix = f"{{path}} has no meaning in mode {mode}", f"write mode: {modes}, or remove"
        path: KeyPath = ("target", "metrics")
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=f"{fix} it", at_key=True)


def windows_fit(mode: str, keys: Names, schema: Sequence[Column]) -> Iterator[Fault]:
    """A window stands in totals only, once, and over a time."""
    windows = [(at, each) for at, each in enumerate(key_parts(keys)) if each.width_us is not None]
    kinds = {each.name: each.kind for each in schema}
    for number, (index, each) in enumerate(windows):
        path: KeyPath = ("target", "keys", index)
        if not SHAPES.by_name[mode].totals:
            message = f"{{path}} is a window, which has no meaning in mode {mode}"
            yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix="name a column")
        elif number:
            message = "{path} is a second window"
            yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix="write another pipeline for it")
        elif kinds.get(each.column, "TIMESTAMP") != "TIMESTAMP":
            message = f"{{path}} is a window over {each.column}, which is a {kinds[each.column]}"
            yield Fault(Kind.COLUMN_TYPE, message, path=path, fix="use a TIMESTAMP column")


def are_measurable(schema: Sequence[Column], metrics: Measures) -> Iterator[Fault]:
    """Each metric is of a column that there is, of a type that it takes."""
    columns = {each.name: each for each in schema}
    for measure in metrics:
        for fault in measure_faults(measure, columns):
            yield replace(fault, path=("target", "metrics", measure.name))


def are_told_apart(keys: Names, metrics: Measures) -> Iterator[Fault]:
    """No two columns of the table have one name, and none has a name of ours."""
    parts = key_parts(keys) if metrics else ()
    windows = {each.name for each in parts if each.width_us is not None}
    for index, each in enumerate(parts):
        if each.width_us is None and each.name.lower() in windows:
            message = "{path} is called like the column of the window"
            fix = "give the column another name in schema, and in the records"
            at: KeyPath = ("target", "keys", index)
            yield Fault(Kind.BAD_COLUMN, message, path=at, fix=fix)
    taken = {each.name.lower() for each in parts}
    for measure in metrics:
        names = _names(measure)
        found = next((each for each in names if each.lower() in taken | OURS), None)
        if found is not None:
            message = "{path} would make a column {found}, which there is already"
            path: KeyPath = ("target", "metrics", measure.name)
            fix = "choose another name"
            yield Fault(Kind.BAD_COLUMN, message, found, path=path, fix=fix, at_key=True)
        taken |= {each.lower() for each in names}


def _names(measure: Measure) -> list[str]:
    sketch = measure.function == "approx_distinct"
    return [measure.name, f"{measure.name}{SKETCH}"] if sketch else [measure.name]
