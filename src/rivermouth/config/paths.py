"""Where the value of a column stands in a record, and as what: ``columns: {city: {from:
address.city}, born: {as: days}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from rivermouth.config.columns import Column
from rivermouth.config.formats import FORMATS
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked, closest, listed
from rivermouth.config.settings import Schema, Written
from rivermouth.config.values import read_name

ROOT = "$."
"""Ahead of a path that begins at the record, as all do but those of events."""
Steps = tuple[str | int, ...]
"""Names of fields, and indices into arrays, from the record down."""
_STEP = re.compile(r"(?P<dot>\.)?(?:`(?P<quoted>[^`]+)`|(?P<plain>[^.\[\]`]+))|\[(?P<at>\d{1,9})\]")
_FORM = "write names with dots and indices, for example address.city or items[0].sku"


@dataclass(frozen=True)
class From:
    """``texts`` are paths as they are written: the first that has a value gives the column; none:
    the field of its name does. ``wire`` is one of ``WIRES``; empty: nothing is said.
    """

    column: str
    texts: tuple[str, ...] = ()
    wire: str = ""

    @property
    def paths(self) -> tuple[Steps, ...]:
        """The paths."""
        return tuple(map(steps_of, self.texts))


def steps_of(text: str) -> Steps:
    """The steps of a path. A name with a dot, bracket or back-quote stands in back-quotes.

    Raises ``Refused``.
    """
    found: list[str | int] = []
    at = len(ROOT) if text.startswith(ROOT) else 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["at"] is None and bool(match["dot"]) != bool(found)):
            break
        if match["at"] is not None and not found:
            break
        name = match["quoted"] or match["plain"]
        found.append(int(match["at"]) if match["at"] is not None else str(name))
        at = match.end()
    if at < len(text) or not found:
        message = "{path} is no path to a field: {value}"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=_FORM))
    return tuple(found)


def read_fields(value: object) -> object:
    """Paths by columns, from the file's words. Raises ``Refused``."""
    if isinstance(value, tuple) and all(isinstance(each, From) for each in value):
        return value
    if not isinstance(value, Mapping):
        message = "{path} must be a mapping of columns, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=_EXAMPLE))
    found: list[From] = []
    faults: list[Fault] = []
    for name, given in value.items():
        try:
            found.append(_member(str(name), given))
        except Refused as refused:
            faults += (replace(each, path=(name, *each.path)) for each in refused.faults)
    return checked(tuple(found), faults)


_EXAMPLE = "for example columns: {city: {from: address.city}}"
PLAIN = "plain"
"""A wire that is none: values are as the format has them."""


@dataclass(frozen=True)
class Wire:
    """How the value of a column may be written: as a column of type ``read``.

    ``kinds`` are the types that the column may have.
    """

    read: str
    kinds: tuple[str, ...]


_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
WIRES: Mapping[str, Wire] = {
    "days": Wire("BIGINT", ("DATE",)),
    "s": Wire("BIGINT", _TIMES),
    "ms": Wire("BIGINT", _TIMES),
    "us": Wire("BIGINT", _TIMES),
    "ns": Wire("BIGINT", _TIMES),
    "unscaled": Wire("BINARY", ("DECIMAL",)),
    "zoned": Wire("STRING", ("DATE", "TIMESTAMP_NTZ")),
}
"""What ``as`` may say: how many days or other units since 1970, the unscaled number in bytes, or
text with a Z at its end that means nothing.
"""


def _member(name: str, given: object) -> From:
    if not isinstance(given, Mapping) or not given or set(given) - {"from", "as"}:
        message = "{path} must be a mapping with from or as, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=_EXAMPLE))
    wire = given.get("as", "")
    try:
        known = read_name((*WIRES, PLAIN), wire) if "as" in given else ""
    except Refused as refused:
        raise Refused(*(replace(each, path=("as",)) for each in refused.faults)) from None
    return From(name, _texts(given["from"]) if "from" in given else (), known)


def _texts(texts: object) -> tuple[str, ...]:
    listed_ = texts if isinstance(texts, list | tuple) else [texts]
    faults: list[Fault] = []
    for index, each in enumerate(listed_):
        path: KeyPath = ("from", index) if listed_ is texts else ("from",)
        if not isinstance(each, str):
            faults.append(Fault(Kind.WRONG_TYPE, "{path} must be text, not {value}", path=path))
            continue
        try:
            steps_of(each)
        except Refused as refused:
            faults += (replace(fault, path=path) for fault in refused.faults)
    if not listed_:
        faults.append(Fault(Kind.BAD_VALUE, "{path} is empty", path=("from",), fix=_EXAMPLE))
    return checked(tuple(map(str, listed_)), faults)


_MEMBER: Schema = {
    "type": "object",
    "properties": {
        "from": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "as": {"enum": [*WIRES, PLAIN]},
    },
    "minProperties": 1,
    "additionalProperties": False,
}
Fields = Annotated[
    tuple[From, ...],
    BeforeValidator(read_fields),
    Written(lambda: {"type": "object", "additionalProperties": _MEMBER}, "mapping"),
    Field(
        validation_alias="columns",
        description="Where the value of a column stands in a record, if not in the field of its"
        " name: `from` is a path, or several of which the first with a value counts. `as` says how"
        " it is written. See [formats](records.md#names-as-they-are).",
        examples=[{"order_id": {"from": "Order Id"}, "born": {"as": "days"}}],
    ),
]


@dataclass
class _Node:
    """What is read of a field: all of it as one ``type``, or parts of it."""

    type: str = ""
    fields: dict[str, _Node] = field(default_factory=dict)
    item: _Node | None = None

    @property
    def whole(self) -> str:
        """The type as SQL text."""
        if self.item is not None:
            return f"ARRAY<{self.item.whole}>"
        if self.fields:
            inner = (f"`{name}`: {each.whole}" for name, each in self.fields.items())
            return f"STRUCT<{', '.join(inner)}>"
        return self.type


def reading(columns: Sequence[Column], fields: Sequence[From]) -> tuple[Column, ...]:
    """The fields of records that give the columns, as columns themselves.

    Raises ``Refused`` where two columns take one field as two types.
    """
    if not fields:
        return tuple(columns)
    root, given = _Node(), {each.column: each.paths for each in fields if each.texts}
    for column in columns:
        for path in given.get(column.name, ((column.name,),)):
            _add(root, path, column)
    return tuple(Column(name, each.whole) for name, each in root.fields.items())


def _add(root: _Node, path: Steps, column: Column) -> None:
    node = root
    for step in path:
        if isinstance(step, int):
            fits = not node.fields and not node.type
            node.item = node.item or _Node()
            following = node.item
        else:
            fits = node.item is None and not node.type
            following = node.fields.setdefault(step, _Node())
        if not fits:
            raise _two(path, column)
        node = following
    if node.fields or node.item is not None or node.type not in ("", column.type):
        raise _two(path, column)
    node.type = column.type


def _two(path: Steps, column: Column) -> Refused:
    message = f"{{path}} takes {'.'.join(map(str, path))} in another way than another column does"
    fix = "give both the same type, or take the parts of one of them"
    return Refused(Fault(Kind.BAD_VALUE, message, path=("columns", column.name), fix=fix))


def are_fields(
    known: str, schema: tuple[Column, ...], fields: tuple[From, ...], each: str | None
) -> Iterator[Fault]:
    """The rule that ``columns`` names columns of the schema, and that the format has names.

    With ``each`` not all stand in one record, see ``config.each``.
    """
    if fields and "from" not in FORMATS.by_name[known].settings:
        message = f"{{path}} has no meaning for format {known}, whose fields have no names"
        yield Fault(Kind.BAD_VALUE, message, path=("columns",), fix="remove it", at_key=True)
        return
    names = [each.name for each in schema]
    strange = [each.column for each in fields if each.column not in names]
    for each in strange:
        suggestion = closest(each, names)
        fix = "" if suggestion else f"columns: {listed(names)}"
        message = "{path} is not a column of schema"
        yield Fault(
            Kind.NO_COLUMN,
            message,
            suggestion=suggestion,
            fix=fix,
            path=("columns", each),
            at_key=True,
        )
    kinds = {each.name: each.kind for each in schema}
    for field_ in fields:
        wire, kind = WIRES.get(field_.wire), kinds.get(field_.column)
        if wire is not None and kind is not None and kind not in wire.kinds:
            message = f"{{path}} is {{value}}, but the column is {kind}"
            fix = f"it is for {' or '.join(wire.kinds)}"
            at = ("columns", field_.column, "as")
            yield Fault(Kind.COLUMN_TYPE, message, path=at, fix=fix)
    try:
        reading(schema, () if strange or each else fields)
    except Refused as refused:
        yield from refused.faults


def written(columns: Sequence[Column], wires: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns with the types as which they are read."""
    return tuple(
        replace(each, type=WIRES[wires[each.name]].read) if each.name in wires else each
        for each in columns
    )
