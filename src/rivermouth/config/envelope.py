"""Change streams: where an event says what happened to a row (``source.envelope``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated

from pydantic import BeforeValidator

from rivermouth.config.columns import Column
from rivermouth.config.formats import FORMATS
from rivermouth.config.paths import ROOT, From, reading, steps_of
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import Schema, Written
from rivermouth.config.values import OnDelete, read_name

OPERATION = "_op"
"""The column that gets what happened, unless it has a path of its own."""
_WORDS = ("op", "data", "before", "old", "delete_when", "skip_when", "truncate_when", "put_when")


@dataclass(frozen=True)
class Envelope:
    """Where an event says what happened. Paths are those of ``columns``; of several the first that
    has a value counts.

    ``op`` names what happened, ``data`` the row after it, ``before`` what is told of a row that was
    deleted, and ``old`` what the row had before it was put, or what has changed of that; an empty
    path is the record itself. Where ``op`` is one of ``delete_when``, the row
    goes; of ``skip_when``, nothing happened to a row; of ``truncate_when``, all rows went. All
    others put the row, or only those of ``put_when`` where there are any. ``roots`` are ahead of a
    path that begins at the record: of a wrapper, which may be there, and of none. ``wires`` say how
    values of a type are written in JSON, see ``paths.WIRES``. The text ``unavailable``, in the form
    that the type of a column has for it, stands for a value that is not told, since it has not
    changed; without one all values are told. Events of
    ``create_when`` have to tell all: there is no earlier row.
    """

    op: tuple[str, ...]
    data: tuple[str, ...]
    before: tuple[str, ...]
    delete_when: tuple[str, ...]
    old: tuple[str, ...] = ()
    skip_when: tuple[str, ...] = ()
    truncate_when: tuple[str, ...] = ()
    put_when: tuple[str, ...] = ()
    roots: tuple[str, ...] = ("",)
    wires: Mapping[str, str] = field(default_factory=dict)
    unavailable: str = ""
    create_when: tuple[str, ...] = ()

    @property
    def given(self) -> dict[str, list[str]]:
        """The same as JSON, as the ledger names it; without what is empty."""
        facts = asdict(replace(self, wires={}))
        given = {name: each for name, each in facts.items() if each}
        return {n: [each] if isinstance(each, str) else [*each] for n, each in given.items()}


_BY_DECIMALS = {"precise": {"DECIMAL": "unscaled"}, "string": {}, "double": {}}
_DAYS = {"DATE": "days"}
_BY_TIMES = {
    "adaptive": _DAYS,
    "adaptive_time_microseconds": _DAYS,
    "connect": {**_DAYS, "TIMESTAMP_NTZ": "ms"},
    "isostring": {"DATE": "zoned", "TIMESTAMP_NTZ": "zoned"},
    "microseconds": {**_DAYS, "TIMESTAMP_NTZ": "us"},
    "nanoseconds": {**_DAYS, "TIMESTAMP_NTZ": "ns"},
}
MODES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "decimal.handling.mode": _BY_DECIMALS,
    "time.precision.mode": _BY_TIMES,
}
"""Options of Debezium's connectors, with what follows from each value; the first is the default.

Where the precision of a column decides about the unit, the column has to name it.
"""
PLACEHOLDER = "unavailable.value.placeholder"
TOLD = (
    *("STRING", "BINARY", "ARRAY<STRING>", "ARRAY<BINARY>", "ARRAY<INT>", "ARRAY<BIGINT>"),
    "MAP<STRING, STRING>",
)
"""The types of columns whose value may be ``unavailable``."""
DEBEZIUM = "debezium"
PRESETS: Mapping[str, Envelope] = {
    DEBEZIUM: Envelope(
        op=("payload.op", "op"),
        data=("payload.after", "after"),
        before=("payload.before", "before"),
        old=("payload.before", "before"),
        delete_when=("d",),
        skip_when=("m",),
        truncate_when=("t",),
        put_when=("c", "r", "u"),
        roots=("payload.", ""),
        wires={**_BY_DECIMALS["precise"], **_BY_TIMES["adaptive"]},
        unavailable="__debezium_unavailable_value",
        create_when=("c", "r"),
    ),
    "maxwell": Envelope(
        op=("type",),
        data=("data",),
        before=("data",),
        old=("old",),
        delete_when=("delete",),
        skip_when=(
            *("bootstrap-start", "bootstrap-complete"),
            *("table-create", "table-alter", "table-drop"),
            *("database-create", "database-alter", "database-drop"),
        ),
        put_when=("insert", "update", "bootstrap-insert"),
    ),
    "dms": Envelope(
        op=("metadata.operation",),
        data=("data",),
        before=("data",),
        delete_when=("delete",),
        skip_when=(
            *("create-table", "rename-table", "drop-table", "change-columns"),
            *("add-column", "drop-column", "rename-column", "column-type-change"),
        ),
        truncate_when=("truncate-table",),
        put_when=("load", "insert", "update"),
    ),
}
"""What the tools write that are known by name."""


def read_envelope(value: object) -> Envelope:
    """A known one by its name, or one by its paths. Raises ``Refused``."""
    if isinstance(value, Envelope):
        return value
    if isinstance(value, str):
        return PRESETS[read_name(PRESETS, value)]
    if not isinstance(value, Mapping):
        message = "{path} must be a name or a mapping, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=_EXAMPLE))
    if set(value) == {DEBEZIUM}:
        return _debezium(value[DEBEZIUM])
    faults: list[Fault] = []
    for name in value:
        if name not in _WORDS:
            message = "{path} is not known"
            fix = f"it may have: {', '.join(_WORDS)}"
            faults.append(Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True))
    for name in ("op", "delete_when"):
        if name not in value:
            faults.append(Fault(Kind.MISSING_KEY, f"{{path}} lacks {name}", fix=_EXAMPLE))
    found = {name: _texts(name, value[name], faults) for name in _WORDS if name in value}
    for name in ("op", "data", "before", "old"):
        faults += _path_faults(name, found.get(name, ()))
    checked(None, faults)
    data = found.get("data", ("",))
    return Envelope(
        op=found["op"],
        data=data,
        before=found.get("before", data),
        delete_when=found["delete_when"],
        old=found.get("old", found.get("before", ())),
        skip_when=found.get("skip_when", ()),
        truncate_when=found.get("truncate_when", ()),
        put_when=found.get("put_when", ()),
    )


def _debezium(options: object) -> Envelope:
    """With the options that its connector has. Raises ``Refused``."""
    fix = f"it may have: {', '.join((*MODES, PLACEHOLDER))}"
    if not isinstance(options, Mapping):
        message = "{path} must be a mapping, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, path=(DEBEZIUM,), fix=fix))
    faults: list[Fault] = []
    wires, known = dict[str, str](), PRESETS[DEBEZIUM]
    for name in {**MODES, **options}:
        path: KeyPath = (DEBEZIUM, str(name))
        if name == PLACEHOLDER:
            known = replace(known, unavailable=_placeholder(options[name], path, faults))
            continue
        if name not in MODES:
            faults.append(
                Fault(Kind.UNKNOWN_KEY, "{path} is not known", path=path, fix=fix, at_key=True)
            )
            continue
        try:
            mode = read_name(MODES[name], options.get(name, next(iter(MODES[name]))))
            wires |= MODES[name][mode]
        except Refused as refused:
            faults += (replace(each, path=(DEBEZIUM, name)) for each in refused.faults)
    return checked(replace(known, wires=wires), faults)


def _placeholder(value: object, path: KeyPath, faults: list[Fault]) -> str:
    if isinstance(value, str) and value and not value.startswith("hex:"):
        return value
    message, fix = (
        "{path} must be a text, not {value}",
        "write hex: octets as the text that they are",
    )
    faults.append(Fault(Kind.BAD_VALUE, message, path=path, fix=fix))
    return ""


_EXAMPLE = "for example envelope: {op: type, data: row, delete_when: [delete]}"


def _texts(name: str, given: object, faults: list[Fault]) -> tuple[str, ...]:
    each = given if isinstance(given, list | tuple) else [given]
    if not each or not all(isinstance(one, str) and one for one in each):
        message = "{path} must be a text, or a list of texts, not {value}"
        faults.append(Fault(Kind.WRONG_TYPE, message, path=(name,)))
        return ()
    return tuple(map(str, each))


def _path_faults(name: str, texts: Sequence[str]) -> Iterator[Fault]:
    for each in texts:
        try:
            steps_of(each)
        except Refused as refused:
            yield from (replace(fault, path=(name,)) for fault in refused.faults)


_LIST: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_OWN: Schema = {
    "type": "object",
    "properties": dict.fromkeys(_WORDS, _LIST),
    "required": ["op", "delete_when"],
    "additionalProperties": False,
}
_OF_DEBEZIUM: Schema = {
    "type": "object",
    "properties": {
        DEBEZIUM: {
            "type": "object",
            "properties": {
                **{name: {"enum": [*each]} for name, each in MODES.items()},
                PLACEHOLDER: {"type": "string"},
            },
            "additionalProperties": False,
        }
    },
    "required": [DEBEZIUM],
    "additionalProperties": False,
}
ENVELOPES = (
    "Records are events of a change stream: "
    + ", ".join(f"`{each}`" for each in PRESETS)
    + ", or where an event says what happened, see [change streams](cdc.md). The columns are those"
    " of the changed row."
)
"""The description of the setting."""
EnvelopeChoice = Annotated[
    Envelope,
    BeforeValidator(read_envelope),
    Written(lambda: {"anyOf": [{"enum": [*PRESETS]}, _OF_DEBEZIUM, _OWN]}, "name or mapping"),
]


@dataclass(frozen=True)
class Events:
    """What is read of events: columns of the record, and in these the paths of what is made.

    ``put`` are those of each column in an event that puts a row, ``deleted`` in one that deletes
    it; empty: the column is null there. ``old`` are those of the keys that a row had before it was
    put.
    """

    reading: tuple[Column, ...]
    op: From
    data: From
    before: From
    put: tuple[From, ...]
    deleted: tuple[From, ...]
    old: tuple[From, ...]


def events_of(
    envelope: Envelope,
    columns: Sequence[Column],
    fields: Sequence[From],
    deleted: Sequence[str],
    keys: Sequence[str],
) -> Events:
    """For these columns, of which ``deleted`` are told of a deleted row, and ``keys`` name a row.

    Raises ``Refused`` where two columns take one field as two types.
    """
    given = {each.column: each.texts for each in fields if each.texts}

    def of(name: str, base: Sequence[str]) -> From:
        if name == OPERATION and name not in given:
            return From(name, envelope.op)
        return From(name, tuple(placed(given.get(name, (_quoted(name),)), base, envelope)))

    put = tuple(of(each.name, envelope.data) for each in columns)
    gone = tuple(
        of(each.name, envelope.before) if each.name in deleted else From(each.name, ())
        for each in columns
    )
    old = [
        of(each.name, envelope.old) if each.name in keys else From(each.name, ())
        for each in columns
    ]
    op = From("op", envelope.op)
    every = [(Column(op.column, "STRING"), op)]
    every += [*zip(columns, put, strict=True), *zip(columns, gone, strict=True)]
    every += zip(columns, old, strict=True)
    asked = [
        (Column(str(n), column.type), From(str(n), of_.texts))
        for n, (column, of_) in enumerate(every)
        if of_.texts
    ]
    read = reading([column for column, _ in asked], [of_ for _, of_ in asked])
    data, before = From("data", envelope.data), From("before", envelope.before)
    return Events(read, op, data, before, put, gone, tuple(each for each in old if each.texts))


def message_key_fields(
    envelope: Envelope, keys: Sequence[str], fields: Sequence[From]
) -> tuple[From, ...]:
    """Where message keys have the columns of a key: by the names that a row has for them, and in
    the same wrapper.
    """
    given = {each.column: each.texts for each in fields if each.texts}
    texts = {each: given.get(each, (_quoted(each),)) for each in keys}
    at_root = {name: [ROOT + t.removeprefix(ROOT) for t in its] for name, its in texts.items()}
    return tuple(From(name, tuple(placed(its, (), envelope))) for name, its in at_root.items())


def placed(texts: Sequence[str], base: Sequence[str], envelope: Envelope) -> Iterator[str]:
    """Paths from the record down; those that do not begin there begin at ``base``."""
    for each in texts:
        if each.startswith(ROOT):
            yield from (f"{root}{each.removeprefix(ROOT)}" for root in envelope.roots)
        else:
            yield from (f"{b}.{each}" if b else each for b in base)


def _quoted(name: str) -> str:
    return f"`{name}`" if any(mark in name for mark in ".[]") else name


def fits_the_rest(envelope: Envelope | None, known: str, mode: str) -> Iterator[Fault]:
    """The rule that events have names, and that their table can take what they do."""
    if envelope is None:
        return
    path: KeyPath = ("source", "envelope")
    if "from" not in FORMATS.by_name[known].settings:
        message = f"{{path}} has no meaning for format {known}, whose fields have no names"
        yield Fault(Kind.BAD_VALUE, message, path=path, fix="remove it", at_key=True)
    shape = SHAPES.by_name[mode]
    if not shape.deletes and not shape.adds:
        message = f"{{path}} has no meaning in mode {mode}"
        fix = "write mode: upsert for the rows as they stand, or append for all events"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=fix, at_key=True)


def are_event_fields(
    envelope: Envelope | None,
    on_delete: OnDelete,
    schema: tuple[Column, ...],
    fields: tuple[From, ...],
    keys: tuple[str, ...],
    order_by: tuple[str, ...],
) -> Iterator[Fault]:
    """The rule that no two columns take a field of events as two types, and that some are taken of
    the row, also of one that was deleted: else nobody would see whether there is one.
    """
    if envelope is None:
        return
    goes = keys and on_delete is OnDelete.DELETE
    deleted = {*keys, *order_by} if goes else {each.name for each in schema}
    try:
        found = events_of(envelope, schema, fields, sorted(deleted), keys)
    except Refused as refused:
        yield from refused.faults
        return
    parts = {"data": (envelope.data, found.put), "before": (envelope.before, found.deleted)}
    for part, (above, taken) in parts.items():
        texts = [text for each in taken for text in each.texts]
        if not any(each == "" or text.startswith(f"{each}.") for each in above for text in texts):
            message = f"{{path}} has {part} in {above[-1]}, of which no column is taken"
            fix = "take a column of the row" + ("" if part == "data" else ": a key, or its order")
            yield Fault(Kind.BAD_VALUE, message, path=("source", "envelope"), fix=fix, at_key=True)
