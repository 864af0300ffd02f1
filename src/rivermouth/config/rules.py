"""What has to fit together: rules over several settings of a pipeline, or over two pipelines.

Each rule looks at ``Parts``, in which a setting that is itself faulty is ``None``, so that a
problem in one setting never hides a problem between others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from rivermouth.config.columns import Column
from rivermouth.config.names import OFFSETS_TABLE, QUARANTINE, TableName
from rivermouth.config.problems import Fault, Kind, Path, closest, listed
from rivermouth.config.start import Start
from rivermouth.registry.formats import FORMATS, KeyForm
from rivermouth.registry.shapes import SHAPES, Shape


@dataclass(frozen=True)
class Parts:
    """What is known of one pipeline."""

    columns: tuple[Column, ...] | None = None
    topics: tuple[str, ...] | None = None
    start: Start | None = None
    key: KeyForm | None = None
    table: TableName | None = None
    shape: Shape | None = None
    keys: tuple[str, ...] | None = None
    order_by: tuple[str, ...] | None = None
    properties: Mapping[str, str] | None = None


def pipeline_faults(parts: Parts) -> Iterator[Fault]:
    """The faults inside one pipeline; paths lead down from the pipeline."""
    return chain(
        _mode(parts),
        _columns(parts, "keys", parts.keys),
        _columns(parts, "order_by", parts.order_by),
        _message_key(parts),
        _start(parts),
        _table(parts),
    )


def _mode(parts: Parts) -> Iterator[Fault]:
    kind = Kind.KEYS_AND_MODE
    if parts.shape is not None and parts.shape.keyed:
        name = parts.shape.name
        if parts.keys == ():
            fix = "name the columns that identify a row, for example keys: [id]"
            message = f"{{path}} is {_article(name)} without keys"
            yield Fault(kind, message, path=("target",), fix=fix)
        for key, value in (parts.properties or {}).items():
            if key.lower() == "delta.appendonly" and value.lower() == "true":
                path: Path = ("target", "properties", key)
                yield Fault(kind, f"{{path}} does not go with mode: {name}", path=path)
    elif parts.shape is not None:
        for setting, names in (("keys", parts.keys), ("order_by", parts.order_by)):
            if names:
                message = f"{{path}} has no meaning in mode {parts.shape.name}"
                fix = f"write mode: {_keyed()}, or remove it"
                yield Fault(kind, message, path=("target", setting), fix=fix, at_key=True)


def _columns(parts: Parts, setting: str, names: tuple[str, ...] | None) -> Iterator[Fault]:
    if parts.columns is None:
        return
    columns = {column.name: column for column in parts.columns}
    for index, name in enumerate(names or ()):
        path: Path = ("target", setting, index)
        column = columns.get(name)
        if column is None:
            suggestion = closest(name, columns)
            fix = "" if suggestion else f"columns: {listed(columns)}"
            message = "{path} names {value}, which is not a column of schema"
            fault = Fault(Kind.NO_COLUMN, message, suggestion=suggestion, fix=fix, path=path)
            yield replace(fault, quotes=("columns",))
        elif not column.primitive:
            message = f"{{path}} names {{value}}, which is {_article(column.kind)}"
            fix = "a column of a primitive type can be compared"
            yield Fault(Kind.COLUMN_TYPE, message, fix=fix, path=path)
        elif column.floating and setting == "keys":
            message = f"{{path}} names {{value}}, which is {_article(column.kind)}"
            fix = "equal numbers need not be equal in floating point: use DECIMAL or BIGINT"
            yield Fault(Kind.COLUMN_TYPE, message, fix=fix, path=path)


def _message_key(parts: Parts) -> Iterator[Fault]:
    if parts.key is None:
        return
    path: Path = ("source", "key")
    if parts.shape is not None and not parts.shape.keyed:
        message = f"{{path}} has no meaning in mode {parts.shape.name}"
        fix = f"it says which row a null value deletes: write mode: {_keyed()}, or remove it"
        yield Fault(Kind.MESSAGE_KEY, message, path=path, fix=fix, at_key=True)
    if parts.shape is None or not parts.shape.keyed or not parts.key.single or not parts.keys:
        return
    if len(parts.keys) > 1:
        message = f"{{path}} is {{value}}, which holds one column, but there are {len(parts.keys)}"
        several = " or ".join(name for name, form in FORMATS.keys.items() if not form.single)
        fix = f"write key: {several}"
        yield Fault(Kind.MESSAGE_KEY, f"{message} in keys", path=path, fix=fix)
    elif parts.key.integral:
        for column in parts.columns or ():
            if column.name == parts.keys[0] and not column.integral:
                name = parts.key.name
                message = f"{{path}} is {name}, but the key column is {_article(column.kind)}"
                fix = f"make the column BIGINT, or write key: {_of_any_type()}"
                yield Fault(Kind.MESSAGE_KEY, message, path=path, fix=fix)


def _start(parts: Parts) -> Iterator[Fault]:
    if parts.start is None or parts.topics is None:
        return
    for topic in parts.start.offsets:
        if topic not in parts.topics:
            path: Path = ("source", "start", topic)
            suggestion = closest(topic, parts.topics)
            message = "{path} names the topic {found}, which is not in topics"
            fault = Fault(Kind.OTHER_TOPIC, message, topic, suggestion, path=path, at_key=True)
            yield replace(fault, quotes=("source", "topics"))


def _table(parts: Parts) -> Iterator[Fault]:
    if parts.table is None:
        return
    path: Path = ("target", "table")
    if parts.table.schema.lower() == OFFSETS_TABLE.schema:
        message = "{path} lies in the schema rivermouth, which holds the offsets table"
        yield Fault(Kind.RESERVED_TABLE, message, path=path, fix="choose another schema")
    if parts.table.name.lower().endswith(QUARANTINE):
        message = "{path} ends in _quarantine, which is the name of a table of refused records"
        yield Fault(Kind.RESERVED_TABLE, message, path=path, fix="choose another name")


def shared_table_faults(pipelines: Mapping[str, Parts]) -> Iterator[Fault]:
    """The faults between pipelines of one table; paths lead down from the top."""
    first: dict[str, str] = {}
    reads: dict[tuple[str, str], str] = {}
    for name, parts in pipelines.items():
        if parts.table is None:
            continue
        table = str(parts.table).lower()
        path: Path = ("pipelines", name, "target", "table")
        other = first.setdefault(table, name)
        differs = _differences(parts, pipelines[other])
        if differs:
            message = f"{{path}} is also the table of pipeline {other}, with another"
            fix = "let both agree, or write two tables"
            yield Fault(Kind.SHARED_TABLE, f"{message} {differs}", path=path, fix=fix)
        for index, topic in enumerate(parts.topics or ()):
            reader = reads.setdefault((table, topic), name)
            if reader != name:
                path = ("pipelines", name, "source", "topics", index)
                message = f"{{path}} is {{value}}, which pipeline {reader} brings into that table"
                fix = "each record would count twice: let one pipeline read it"
                yield Fault(Kind.SHARED_TABLE, message, path=path, fix=fix)


def _differences(one: Parts, other: Parts) -> str:
    pairs = {
        "spelling of the name": (one.table, other.table),
        "mode": (one.shape, other.shape),
        "keys": (one.keys, other.keys),
        "order_by": (one.order_by, other.order_by),
        "schema": (one.columns, other.columns),
    }
    return listed(word for word, (a, b) in pairs.items() if None not in (a, b) and a != b)


def _keyed() -> str:
    return " or ".join(name for name, shape in SHAPES.by_name.items() if shape.keyed)


def _of_any_type() -> str:
    forms = FORMATS.keys.values()
    return " or ".join(form.name for form in forms if form.single and not form.integral)


def _article(kind: str) -> str:
    return f"{'an' if kind[0].upper() in 'AEIOU' else 'a'} {kind}"
