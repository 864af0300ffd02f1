"""Pipelines of topics whose values name schemas: format and columns are those of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Message

from rivermouth.config import Config, Secrets
from rivermouth.config.columns import parse_columns
from rivermouth.config.envelope import DEBEZIUM, PRESETS
from rivermouth.config.formats import FORMATS
from rivermouth.config.problems import Refused
from rivermouth.config.registry import resolve
from rivermouth.errors import NotInferred
from rivermouth.formats.protobuf.schema import Types
from rivermouth.operate.columns import columns_of_records
from rivermouth.operate.drafts import Draft
from rivermouth.schemas.change_events import ORDERS, order_by
from rivermouth.schemas.inferred import Field
from rivermouth.schemas.recognized import framed, number_of
from rivermouth.schemas.registry import Registry, Schema
from rivermouth.schemas.whole import text_of

_FORMATS = {"AVRO": "avro", "PROTOBUF": "protobuf"}
_HEAD = 5
_MOST_NUMBERS = 50
"""More than any topic has: other bytes may look like numbers, too."""


class Schemas:
    """The schemas of the registry that a configuration names, if it names one."""

    def __init__(self, config: Config, secrets: Secrets) -> None:
        registry = config.schema_registry
        self._options = None if registry is None else registry.revealed(secrets)

    def of(self, topic: str, numbers: Sequence[int]) -> Schema:
        """The newest schema of the topic's values, which name ``numbers``.

        Raises NotInferred where nobody can tell it, and SourceError.
        """
        if self._options is None:
            raise NotInferred(
                "its values begin with the number of a schema, and no registry is named",
                where=topic,
                remedy="Name the registry that has it: --registry URL",
            )
        with Registry(self._options) as registry:
            found = {each: registry.schema(each) for each in numbers[-_MOST_NUMBERS:]}
            known = {number: each for number, each in found.items() if each is not None}
            if not known:
                listed = ", ".join(map(str, numbers[:5]))
                raise NotInferred(f"the registry does not know the schemas {listed}", where=topic)
            kinds = {each.kind for each in known.values()}
            if len(kinds) > 1 or not kinds <= {*_FORMATS}:
                listed = " and ".join(sorted(kinds))
                raise NotInferred(f"its values have schemas of {listed}", where=topic)
            newest = registry.newest(f"{topic}-value")
        [kind] = kinds
        last = known[max(known)]
        return newest if newest is not None and newest.kind == kind else last

    def key_names(self, message: Message) -> tuple[str, tuple[str, ...]]:
        """The format of a record key that names a schema, and its fields; empty: none is known."""
        key = message.key()
        numbers = numbers_in_headers([message], "key")
        if isinstance(key, bytes) and framed(key):
            numbers = (number_of(key),)
        if self._options is None or not numbers:
            return "", ()
        with Registry(self._options) as registry:
            found = registry.schema(numbers[0])
        if found is None or found.kind not in _FORMATS:
            return "", ()
        name = _FORMATS[found.kind]
        record = _record(name, text_of(found), "")
        return name, tuple(each["name"] for each in record.get("fields", ()))


def numbers_in_headers(messages: Sequence[Message], what: str = "value") -> tuple[int, ...]:
    """The numbers of schemas of their values, or keys, where all messages have them in a header;
    else none.
    """
    header, found = f"apicurio.{what}.contentId", set[int]()
    for each in messages:
        headers: Any = each.headers() or ()
        values = [value for name, value in headers if name == header]
        if not values:
            return ()
        found.add(int.from_bytes(values[-1], "big"))
    return tuple(sorted(found))


def draft_by_schema(
    topic: str,
    schema: Schema,
    value: bytes,
    framing: str,
    key: tuple[str, tuple[str, ...]],
) -> Draft:
    """The pipeline of values of a schema, of which ``value`` is one.

    ``key`` are the format and the fields of record keys: they name the rows of events. Without
    them events are appended. Raises NotInferred where no columns hold the values.
    """
    name, text = _FORMATS[schema.kind], text_of(schema)
    message = _message(text, value) if schema.kind == "PROTOBUF" else ""
    try:
        record = _record(name, text, message)
        row = _row_of(record)
        form, keys = key if row is not None and {*key[1]} <= {*_fields(row)} else ("", ())
        mode = "upsert" if keys else "append"
        envelope = PRESETS[DEBEZIUM] if row is not None else None
        its = {"source.envelope": envelope, "target.mode": mode, "columns": ()}
        sql = columns_of_records(FORMATS.by_name[name], its, text, message)
    except (Refused, ValueError, LookupError, TypeError) as fault:
        why = fault.faults[0].message if isinstance(fault, Refused) else fault
        raise NotInferred(f"no columns hold its records: {why}", where=topic) from fault
    source = {"format": name, **({"framing": framing} if framing != "confluent" else {})}
    source |= {"envelope": DEBEZIUM} if row is not None else {}
    columns = tuple(Field(each.name, each.type) for each in parse_columns(sql))
    return Draft(
        topic,
        source | ({"key": form} if keys else {}),
        columns,
        mode=mode,
        keys=keys,
        order=_order(record, columns) if keys else (),
    )


def _record(name: str, text: str, message: str) -> Mapping[str, Any]:
    """The type of the records of a schema, as Delta's JSON has it."""
    known = resolve(str(FORMATS.by_name[name].columns_of))
    found: Any = known(text, message) if message else known(text)
    return found if isinstance(found, dict) else {}


def _fields(kind: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in kind.get("fields", ())}


def _row_of(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The type of the rows, where the records are events of Debezium."""
    fields = _fields(record)
    row = fields.get("after")
    return row if {"op", "source", "before"} <= {*fields} and isinstance(row, dict) else None


def _order(record: Mapping[str, Any], columns: Sequence[Field]) -> tuple[Field, ...]:
    """The columns that put events in order, by the fields of their source."""
    told, names = {*_fields(_fields(record)["source"])}, [each.name for each in columns]
    found = (order_by(each, told, names) for each in ORDERS)
    return next(filter(None, found), ())


def _message(text: str, value: bytes) -> str:
    """The name of the message that a framed value is, by the path behind the number."""
    at, path = _HEAD, list[int]()
    count, at = _zigzag(value, at)
    for _ in range(count):
        step, at = _zigzag(value, at)
        path.append(step)
    found = Types.from_json(text).at(path or [0])
    if found is None:
        raise LookupError(f"there is no message at {path}")
    return found.name


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    """A number of a few bits in each byte, and where it ends."""
    number = shift = 0
    while True:
        byte = value[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number >> 1 ^ -(number & 1), at
