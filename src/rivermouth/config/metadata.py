"""What ``_kafka`` tells of a record beside its place and time: ``source.metadata``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from rivermouth.config.problems import Fault, Kind, Refused, checked, closest, repeated
from rivermouth.config.written import Schema, Written
from rivermouth.registry.shapes import SHAPES

ALWAYS = ("topic", "partition", "offset", "timestamp")
"""The fields of ``_kafka`` that every row has: by them it is proved."""
METADATA = ("key", "headers")
"""Those that may be asked for, in the order in which they follow."""


def read_metadata(value: object) -> tuple[str, ...]:
    """Names of fields, each once, in their order in ``_kafka``; raises ``Refused``."""
    if not isinstance(value, list | tuple):
        message = "{path} must be a list of names, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=f"it may have: {', '.join(METADATA)}"))
    faults: list[Fault] = []
    for index, each in enumerate(value):
        if each in ALWAYS:
            message = "{path} is {value}, which every row has"
            faults.append(Fault(Kind.BAD_VALUE, message, path=(index,), fix="remove it"))
        elif each not in METADATA:
            kind = Kind.BAD_VALUE if isinstance(each, str) else Kind.WRONG_TYPE
            meant = closest(each, METADATA) if isinstance(each, str) else ""
            message = f"{{path}} must be {' or '.join(METADATA)}, not {{value}}"
            faults.append(Fault(kind, message, suggestion=meant, path=(index,)))
    known = [each if each in METADATA else f"{index}" for index, each in enumerate(value)]
    faults += repeated(known)
    return checked(tuple(each for each in METADATA if each in known), faults)


def has_rows_of_records(mode: str, metadata: tuple[str, ...]) -> Iterator[Fault]:
    """The rule that a table has rows of single records, for their metadata to stand in."""
    shape, path = SHAPES.by_name[mode], ("source", "metadata")
    if metadata and shape.totals:
        message = f"{{path}} has no meaning in mode {mode}"
        fix = "a row of totals is of many records: remove it"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=fix, at_key=True)
    if metadata and shape.sends:
        message = "{path} has no meaning for a target that is no table"
        fix = "a topic gets the headers by forward_headers: true; remove it"
        yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)


def _list() -> Schema:
    return {"type": "array", "items": {"enum": [*METADATA]}, "uniqueItems": True}


def _where() -> str:
    refusing = [f"`{name}`" for name, each in SHAPES.by_name.items() if each.totals]
    return f"Refused for mode {' or '.join(refusing)}, and for targets that are no table."


Metadata = Annotated[
    tuple[str, ...],
    BeforeValidator(read_metadata),
    Written(_list, "list of `key`, `headers`", more=_where),
    Field(
        description="What the column `_kafka` holds of a record beside topic, partition, offset and"
        " timestamp, see [tables](tables.md#message-key-and-headers).",
        examples=[["key", "headers"]],
    ),
]
