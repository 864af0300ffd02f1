"""Rules over the settings of a table of totals: ``keys``, ``metrics`` and ``schema`` together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rivermouth.config.columns import Column
from rivermouth.config.ddl import OURS
from rivermouth.config.problems import Fault, Kind, Path
from rivermouth.config.totals import SKETCH, Measure, key_parts, measure_faults
from rivermouth.registry.shapes import SHAPES

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
        path: Path = ("target", "metrics")
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=f"{fix} it", at_key=True)


def windows_fit(mode: str, keys: Names, schema: Sequence[Column]) -> Iterator[Fault]:
    """A window stands in totals only, once, and over a time."""
    windows = [(at, each) for at, each in enumerate(key_parts(keys)) if each.width_us is not None]
    kinds = {each.name: each.kind for each in schema}
    for number, (index, each) in enumerate(windows):
        path: Path = ("target", "keys", index)
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
            at: Path = ("target", "keys", index)
            yield Fault(Kind.BAD_COLUMN, message, path=at, fix=fix)
    taken = {each.name.lower() for each in parts}
    for measure in metrics:
        names = _names(measure)
        found = next((each for each in names if each.lower() in taken | OURS), None)
        if found is not None:
            message = "{path} would make a column {found}, which there is already"
            path: Path = ("target", "metrics", measure.name)
            fix = "choose another name"
            yield Fault(Kind.BAD_COLUMN, message, found, path=path, fix=fix, at_key=True)
        taken |= {each.lower() for each in names}


def _names(measure: Measure) -> list[str]:
    sketch = measure.function == "approx_distinct"
    return [measure.name, f"{measure.name}{SKETCH}"] if sketch else [measure.name]
