"""The columns of pipelines whose file does not name them.

They are those of the schema in ``schema_file``; else those of the table, and of one that is not
there yet those of the newest schema that the registry has. So no run changes columns by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rivermouth.config import Catalog, Secrets
from rivermouth.config.encoding import schema_text
from rivermouth.config.envelope import OPERATION, Envelope, placed
from rivermouth.config.formats import FORMATS, Format
from rivermouth.config.loader import Unsaid
from rivermouth.config.paths import ROOT, From, Steps, steps_of
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.registry import SHAPES, resolve
from rivermouth.config.values import OnDelete
from rivermouth.schemas.registry import Registry
from rivermouth.schemas.whole import text_of
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.actions import in_sql
from rivermouth.warehouse.delta.log import DeltaLog

_OURS = ("_kafka", "_tombstone")


def columns_of(unsaid: Unsaid, secrets: Callable[[], Secrets]) -> str | None:
    """Tells the columns of a pipeline as SQL; None: its file has to name them.

    ``secrets`` are those of the registry's client. Raises ``Refused``, and SourceError where the
    registry is asked and gives no answer.
    """
    its = unsaid.settings
    known = FORMATS.by_name.get(its.get("source.format", ""))
    shape = SHAPES.by_name.get(its.get("target.mode", ""))
    made = its.get("transform") or its.get("select") or its.get("each")
    if known is None or known.columns_of is None or shape is None or shape.totals or made:
        return None
    file = its.get("source.schema_file")
    if file is not None:
        try:
            text = schema_text(known.name, file)
        except (OSError, ValueError):  # a rule says why
            return None
        return columns_of_records(known, its, str(text), its.get("source.message") or "")
    where = unsaid.warehouse
    if where is None or isinstance(where, Catalog) or "target.table" not in its:
        return None
    lake = Lake.at(where, unsaid.storage, secrets)
    there = DeltaLog(lake.store(its["target.table"])).definition()
    if there is not None:
        return _of_table(there.schema)
    if unsaid.registry is None or "source.topics" not in its:
        return None
    with Registry(unsaid.registry.revealed(secrets())) as registry:
        return columns_of_records(known, its, _newest(registry, [*its["source.topics"]]))


def _newest(registry: Registry, topics: Sequence[str]) -> str:
    """The newest schema of the values of all these topics."""
    if not topics:
        raise _refused("topics by a pattern may have any schema")
    texts = set[str]()
    for each in topics:
        found = registry.newest(f"{each}-value")
        if found is None:
            raise _refused(f"the registry has no subject {each}-value")
        texts.add(text_of(found))
    if len(texts) > 1:
        raise _refused("its topics have several schemas")
    return texts.pop()


def _of_table(schema: Mapping[str, Any]) -> str:
    return ", ".join(
        _column(each["name"], each["type"]) + ("" if each["nullable"] else " NOT NULL")
        for each in schema["fields"]
        if each["name"] not in _OURS and not any(map(_is_made, each.get("metadata", ())))
    )


def _is_made(key: str) -> bool:
    """Whether a column with such metadata is filled by Spark."""
    return key.startswith(("delta.generationExpression", "delta.identity."))


def columns_of_records(known: Format, its: Mapping[str, Any], text: str, message: str = "") -> str:
    """The columns that hold what records of a schema have; of events, what their rows have."""
    try:
        columns_of = resolve(str(known.columns_of))
        record = columns_of(text, message) if message else columns_of(text)
    except (ValueError, LookupError, TypeError) as fault:  # it may be a schema of another format
        raise _refused(f"no columns hold its records: {fault}") from fault
    envelope: Envelope | None = its.get("source.envelope")
    row = record if envelope is None else _first(record, envelope.data)
    if not isinstance(row, dict) or row["type"] != "struct":
        raise _refused("its records have no fields")
    given: Sequence[From] = its.get("columns", ())
    if any(each.wire for each in given):
        raise _refused("only schema tells the types of columns with as")
    paths = {each.column: each.texts for each in given if each.texts}
    taken = {steps_of(each) for texts in paths.values() for each in texts if ROOT not in each}
    columns = {e["name"]: e["type"] for e in row["fields"] if (e["name"],) not in taken}
    for name, texts in paths.items():
        whole = texts if envelope is None else placed(texts, envelope.data, envelope)
        kind = _first(record, whole)
        if kind is None:
            raise _refused(f"its records have no {texts[0]}")
        columns[name] = kind
    if envelope is not None and _tells_what_happened(its):
        columns.setdefault(OPERATION, "string")
    return ", ".join(_column(name, kind) for name, kind in columns.items())


def _column(name: str, kind: Any) -> str:
    if "`" in name:
        raise _refused(f"no column has the name {name}")
    return f"`{name}` {in_sql(kind, '`')}"


def _tells_what_happened(its: Mapping[str, Any]) -> bool:
    """Whether rows of all events stand in the table, so that a column has to tell them apart."""
    stays = its.get("source.on_delete") is OnDelete.ROW
    return stays or SHAPES.by_name[its["target.mode"]].adds


def _first(record: Any, texts: Iterable[str]) -> Any:
    """The type at the first path that leads anywhere; an empty one is the record. None: none."""
    every = (_at(record, steps_of(each)) if each else record for each in texts)
    return next((each for each in every if each is not None), None)


def _at(kind: Any, steps: Steps) -> Any:
    for step in steps:
        inner = kind if isinstance(kind, dict) else {}
        if isinstance(step, int):
            kind = inner.get("elementType")
        else:
            fields = {each["name"]: each["type"] for each in inner.get("fields", ())}
            kind = fields.get(step)
    return kind


def _refused(why: str) -> Refused:
    message = f"{{path}} has no columns: {why}"
    return Refused(Fault(Kind.MISSING_KEY, message, fix="write schema", at_key=True))
