"""Rules over several settings of a pipeline.

Each rule names the settings that it looks at. It is applied if all of them are sound, so that a
problem in one setting does not hide a problem between others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from rivermouth.config.columns import Column
from rivermouth.config.each import elements_have_fields, has_elements
from rivermouth.config.encoding import (
    fits_the_format,
    has_such_columns,
    has_the_number,
    leniencies_fit,
    one_schema,
    schema_is_sound,
)
from rivermouth.config.envelope import OPERATION, Envelope, are_event_fields, fits_the_rest
from rivermouth.config.formats import FORMATS
from rivermouth.config.layout import fits_together, lays_out, no_text_decides
from rivermouth.config.names import OFFSETS_TABLE, QUARANTINE, TableName
from rivermouth.config.paths import are_fields
from rivermouth.config.problems import Fault, KeyPath, Kind, closest, listed
from rivermouth.config.registry import SHAPES, Shape
from rivermouth.config.settings import Given
from rivermouth.config.sinks import (
    ONLY_TO_A_TOPIC,
    delivery_is_kept,
    id_is_ours,
    no_loop,
    not_split,
    only_to_a_topic,
    sinks_fit,
    topics_are_chosen,
)
from rivermouth.config.source import has_rows_of_records
from rivermouth.config.start import Start
from rivermouth.config.topics import Topics
from rivermouth.config.totals import (
    are_measurable,
    are_told_apart,
    key_parts,
    need_metrics,
    windows_fit,
)
from rivermouth.config.transform import at_most_one, explodes_rows, fits_the_mode, tells_columns
from rivermouth.config.values import OnDelete, Tombstones

Names = tuple[str, ...]
Columns = tuple[Column, ...]
T = TypeVar("T")
SentRule = Callable[[Columns, Columns | None, T], Iterator[Fault]]


def are_columns(setting: str) -> Callable[[Columns, Names], Iterator[Fault]]:
    """The rule that a list of ``target`` names columns of primitive types."""

    def faults(schema: Columns, names: Names) -> Iterator[Fault]:
        columns = {column.name: column for column in schema}
        # Only a key of totals may be a window of a column.
        plain = names if setting != "keys" else [each.column for each in key_parts(names)]
        for index, name in enumerate(plain):
            fault = _column_fault(setting, name, columns)
            if fault is not None:
                yield replace(fault, path=("target", setting, index))

    return faults


def is_one_of(setting: str, *kinds: str) -> Callable[[Columns, str | None], Iterator[Fault]]:
    """The rule that a setting of ``target`` names a column of one of these types."""

    def faults(schema: Columns, name: str | None) -> Iterator[Fault]:
        if name is None:
            return
        columns = {column.name: column for column in schema}
        fault = _column_fault(setting, name, columns)
        if fault is None and columns[name].kind not in kinds:
            message = f"{{path}} names {{value}}, which is {article(columns[name].kind)}"
            fault = Fault(Kind.COLUMN_TYPE, message, fix=f"it must be {' or '.join(kinds)}")
        if fault is not None:
            yield replace(fault, path=("target", setting))

    return faults


def of_sent_rows(rule: Callable[[Columns, T], Iterator[Fault]]) -> SentRule[T]:
    """The rule about columns of the rows that are sent: of ``target.schema``, where it is given."""

    def faults(schema: Columns, made: Columns | None, value: T) -> Iterator[Fault]:
        if made is None:
            yield from rule(schema, value)
            return
        for each in rule(made, value):
            message = each.message.replace("a column of schema", "a column of target.schema")
            quotes: KeyPath = ("target", "schema") if each.quotes else ()
            yield replace(each, message=message, quotes=quotes)

    return faults


def _column_fault(setting: str, name: str, columns: Mapping[str, Column]) -> Fault | None:
    column = columns.get(name)
    if column is None:
        suggestion = closest(name, columns)
        fix = "" if suggestion else f"columns: {listed(columns)}"
        message = "{path} names {value}, which is not a column of schema"
        fault = Fault(Kind.NO_COLUMN, message, suggestion=suggestion, fix=fix)
        return replace(fault, quotes=("schema",))
    message = f"{{path}} names {{value}}, which is {article(column.kind)}"
    if not column.primitive:
        fix = "use a column of a primitive type"
        return Fault(Kind.COLUMN_TYPE, message, fix=fix)
    if column.floating and setting == "keys":
        fix = "floating-point numbers cannot be compared exactly: use DECIMAL or BIGINT"
        return Fault(Kind.COLUMN_TYPE, message, fix=fix)
    return None


def article(kind: str) -> str:
    """The name of a type or mode with its article."""
    return f"{'an' if kind[0].upper() in 'AEIOU' else 'a'} {kind}"


@dataclass(frozen=True)
class Rule:
    """``faults`` takes the values of ``settings``; its paths lead down from the pipeline."""

    settings: tuple[str, ...]
    faults: Callable[..., Iterator[Fault]]


def pipeline_faults(pipeline: Given) -> Iterator[Fault]:
    """The faults inside one pipeline; paths lead down from it."""
    for rule in RULES:
        if all(each in pipeline for each in rule.settings):
            yield from rule.faults(*(pipeline[each] for each in rule.settings))


def _needs_keys(mode: str, keys: Names) -> Iterator[Fault]:
    if SHAPES.by_name[mode].keyed and not keys:
        message = f"{{path}} is {article(mode)} without keys"
        fix = "name the columns that identify a row, for example keys: [id]"
        yield Fault(Kind.KEYS_AND_MODE, message, path=("target",), fix=fix)


def _replaces_rows(mode: str, properties: Mapping[str, str]) -> Iterator[Fault]:
    for name, value in properties.items() if SHAPES.by_name[mode].keyed else ():
        if name.lower() == "delta.appendonly" and value.lower() == "true":
            path: KeyPath = ("target", "properties", name)
            message = f"{{path}} does not go with mode: {mode}"
            yield Fault(Kind.KEYS_AND_MODE, message, path=path)


def _no_names(setting: str, takes: Callable[[Shape], bool]) -> Callable[..., Iterator[Fault]]:
    def faults(mode: str, names: Names) -> Iterator[Fault]:
        if names and not takes(SHAPES.by_name[mode]):
            message = f"{{path}} has no meaning in mode {mode}"
            fix = f"write mode: {_modes(takes)}, or remove it"
            path: KeyPath = ("target", setting)
            yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=fix, at_key=True)

    return faults


def _key_has_rows(key: str | None, mode: str) -> Iterator[Fault]:
    if key is not None and not SHAPES.by_name[mode].deletes:
        message = f"{{path}} has no meaning in mode {mode}"
        modes = _modes(lambda shape: shape.deletes)
        fix = f"it says which row a null value deletes; write mode: {modes}, or remove it"
        path: KeyPath = ("source", "key")
        yield Fault(Kind.MESSAGE_KEY, message, path=path, fix=fix, at_key=True)


def _adds_rows(tombstones: Tombstones | None, mode: str) -> Iterator[Fault]:
    if tombstones is not None and not SHAPES.by_name[mode].adds:
        message = f"{{path}} has no meaning in mode {mode}"
        deletes = SHAPES.by_name[mode].deletes
        fix = "a record without a value is bad there"
        fix += ", or deletes a row with source.key" if deletes else ""
        path: KeyPath = ("source", "tombstones")
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=f"{fix}; remove it", at_key=True)


def _rows_stay(
    on_delete: OnDelete, envelope: Envelope | None, key: str | None, mode: str, schema: Columns
) -> Iterator[Fault]:
    """Rows of deleted keys stay where events delete, and where a column tells them apart."""
    if on_delete is OnDelete.DELETE:
        return
    path: KeyPath = ("source", "on_delete")
    if envelope is None or not SHAPES.by_name[mode].deletes:
        message = "{path} has no meaning without an envelope in mode upsert"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix="remove it", at_key=True)
    elif key is not None:
        message = "{path} is row, but with source.key a tombstone deletes the row"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix="remove source.key")
    elif all(each.name != OPERATION for each in schema):
        message = "{path} is row, but no column tells these rows from others"
        fix = f"add {OPERATION} STRING to schema"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=fix)


def _key_holds_all(key: str | None, mode: str, keys: Names) -> Iterator[Fault]:
    forms = FORMATS.keys
    if key is not None and SHAPES.by_name[mode].deletes and forms[key].single and len(keys) > 1:
        message = f"{{path}} is {{value}}, which holds one column, but there are {len(keys)}"
        several = " or ".join(name for name, form in forms.items() if not form.single)
        fix, path = f"write key: {several}", ("source", "key")
        yield Fault(Kind.MESSAGE_KEY, f"{message} in keys", path=path, fix=fix)


def _key_is_integral(key: str | None, mode: str, keys: Names, schema: Columns) -> Iterator[Fault]:
    forms = FORMATS.keys
    integral = key is not None and forms[key].integral
    if not integral or not SHAPES.by_name[mode].deletes or len(keys) != 1:
        return
    for column in schema:
        if column.name == keys[0] and not column.integral:
            message = f"{{path}} is {key}, but the key column is {article(column.kind)}"
            others = (name for name, form in forms.items() if form.single and not form.integral)
            fix = f"make the column BIGINT, or write key: {' or '.join(others)}"
            yield Fault(Kind.MESSAGE_KEY, message, path=("source", "key"), fix=fix)


def _topics_are_read(start: Start, topics: Topics) -> Iterator[Fault]:
    for topic in start.offsets:
        if not topics.take(topic):
            path: KeyPath = ("source", "start", topic)
            suggestion = closest(topic, topics)
            message = "{path} names the topic {found}, which is not in topics"
            fault = Fault(Kind.OTHER_TOPIC, message, topic, suggestion, path=path, at_key=True)
            yield replace(fault, quotes=("source", "topics"))
            continue
        for number in start.named(topic):
            if not topics.has(topic, number):
                path = ("source", "start", topic, str(number))
                message = "{path} names the partition {found}, which is not in topics"
                fault = Fault(Kind.OTHER_TOPIC, message, str(number), path=path, at_key=True)
                yield replace(fault, quotes=("source", "topics"))


def _fewer_than_most(least: int | None, most: int) -> Iterator[Fault]:
    if least is not None and least > most:
        path: KeyPath = ("source", "min_offsets_per_trigger")
        message = "{path} is {value}, above max_offsets_per_trigger"
        fix = "lower it, or raise max_offsets_per_trigger (500000 by default)"
        yield Fault(Kind.BAD_VALUE, message, path=path, fix=fix)


def _table_is_free(table: TableName, *sinks: object) -> Iterator[Fault]:
    path: KeyPath = ("target", "table")
    if any(sinks):  # the table of its ledger is ours
        return
    if table.schema.lower() == OFFSETS_TABLE.schema:
        message = "{path} is in the schema rivermouth, which is reserved for the offsets table"
        yield Fault(Kind.RESERVED_TABLE, message, path=path, fix="choose another schema")
    if table.name.lower().endswith(QUARANTINE):
        message = "{path} ends in _quarantine, which is reserved for tables of refused records"
        yield Fault(Kind.RESERVED_TABLE, message, path=path, fix="choose another name")


_OF_TABLE = ("schema", "target.schema", "target.mode", "target.keys", "target.metrics")
RULES = (
    Rule(("target.mode", "target.keys"), _needs_keys),
    Rule(("target.mode", "target.properties"), _replaces_rows),
    Rule(
        (
            "target.mode",
            "target.partition_by",
            "target.cluster_by",
            "target.file_size",
            "target.properties",
        ),
        fits_together,
    ),
    Rule((*_OF_TABLE, "target.partition_by"), lays_out("partition_by")),
    Rule(
        (
            "schema",
            "target.keys",
            "target.order_by",
            "target.metrics",
            "target.partition_by",
        ),
        no_text_decides,
    ),
    Rule((*_OF_TABLE, "target.cluster_by"), lays_out("cluster_by")),
    Rule(("target.mode", "target.keys"), _no_names("keys", lambda shape: shape.keyed)),
    Rule(("target.mode", "target.order_by"), _no_names("order_by", lambda shape: shape.ordered)),
    Rule(("schema", "target.keys"), are_columns("keys")),
    Rule(("schema", "target.order_by"), are_columns("order_by")),
    Rule(("target.mode", "target.metrics"), need_metrics),
    Rule(("target.mode", "target.keys", "schema"), windows_fit),
    Rule(("schema", "target.metrics"), are_measurable),
    Rule(("target.keys", "target.metrics"), are_told_apart),
    Rule(("source.key", "target.mode"), _key_has_rows),
    Rule(("source.tombstones", "target.mode"), _adds_rows),
    Rule(("source.key", "target.mode", "target.keys"), _key_holds_all),
    Rule(("source.key", "target.mode", "target.keys", "schema"), _key_is_integral),
    Rule(
        ("source.format", "source.timestamps.unit", "source.timestamps.fraction"),
        fits_the_format("timestamps", "unit", "fraction"),
    ),
    Rule(("target.mode", "source.metadata"), has_rows_of_records),
    Rule(("source.format", "source.lenient"), fits_the_format("lenient")),
    Rule(("source.format", "source.lenient"), leniencies_fit),
    Rule(("source.format", "source.on_empty"), fits_the_format("on_empty")),
    Rule(("source.format", "source.framing"), fits_the_format("framing")),
    Rule(("source.format", "source.framing"), has_the_number),
    Rule(("source.format", "source.schema_file"), fits_the_format("schema_file")),
    Rule(("source.format", "source.message"), fits_the_format("message")),
    Rule(
        ("source.format", "source.csv.delimiter", "source.csv.null_value"),
        fits_the_format("csv", "delimiter", "null_value"),
    ),
    Rule(
        ("source.format", "source.framing", "source.schema_file", "source.message"),
        one_schema,
    ),
    Rule(("source.format", "source.schema_file"), schema_is_sound),
    Rule(("source.format", "schema"), has_such_columns),
    Rule(("source.format", "schema", "columns", "each"), are_fields),
    Rule(
        ("each", "source.format", "source.envelope", "target.mode", "transform", "select"),
        has_elements,
    ),
    Rule(("each", "schema", "columns"), elements_have_fields),
    Rule(("source.envelope", "source.format", "target.mode"), fits_the_rest),
    Rule(
        (
            *("source.envelope", "source.on_delete", "schema", "columns"),
            *("target.keys", "target.order_by"),
        ),
        are_event_fields,
    ),
    Rule(
        ("source.on_delete", "source.envelope", "source.key", "target.mode", "schema"),
        _rows_stay,
    ),
    Rule(("source.start", "source.topics"), _topics_are_read),
    Rule(("source.min_offsets_per_trigger", "source.max_offsets_per_trigger"), _fewer_than_most),
    Rule(("transform", "select"), at_most_one),
    Rule(("transform", "select", "target.schema"), tells_columns),
    Rule(("transform", "select", "target.mode"), fits_the_mode),
    Rule(("transform", "select", "target.mode", "target.explode"), explodes_rows),
    Rule(("target.table", "target.kafka", "target.foreach_partition"), _table_is_free),
    Rule(("target.mode", "target.kafka", "target.foreach_partition"), sinks_fit),
    Rule(
        ("target.mode", "target.delivery", "target.kafka", "target.foreach_partition"),
        delivery_is_kept,
    ),
    Rule(("target.kafka", "source.topics"), no_loop),
    Rule(("target.kafka", "target.topic_column"), topics_are_chosen),
    Rule(
        ("target.kafka", *(f"target.{each}" for each in ONLY_TO_A_TOPIC)),
        only_to_a_topic,
    ),
    Rule(
        ("schema", "target.schema", "target.topic_column"),
        of_sent_rows(is_one_of("topic_column", "STRING")),
    ),
    Rule(
        ("schema", "target.schema", "target.partition_column"),
        of_sent_rows(is_one_of("partition_column", "INT", "SMALLINT", "TINYINT")),
    ),
    Rule(
        ("schema", "target.schema", "target.message_key"),
        of_sent_rows(are_columns("message_key")),
    ),
    Rule(
        ("schema", "target.schema", "target.header_columns"),
        of_sent_rows(are_columns("header_columns")),
    ),
    Rule(("target.header_columns",), id_is_ours),
    Rule(
        (
            "target.foreach_partition",
            "source.min_partitions",
            "source.max_records_per_partition",
        ),
        not_split,
    ),
)


def _modes(takes: Callable[[Shape], bool]) -> str:
    return " or ".join(name for name, shape in SHAPES.by_name.items() if takes(shape))
