"""Pipelines of topics by their values alone: JSON, lines, text, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rivermouth.config.each import WHOLE
from rivermouth.config.envelope import DEBEZIUM, OPERATION
from rivermouth.errors import NotInferred
from rivermouth.operate.drafts import Draft
from rivermouth.schemas.change_events import Events, events_of
from rivermouth.schemas.inferred import Field, Inferred, infer, infer_lines
from rivermouth.schemas.recognized import Kind, Recognized, lines_of, seen_texts
from rivermouth.schemas.seen import Seen

_MOST_COLUMNS = 1_000
_BYTES = "value: bytes that are no text. If they are Avro or Protobuf, write format and schema_file"
_UNTYPED = "records do not tell the types of the source: see docs/cdc.md for days and decimals"


def draft_by_values(topic: str, found: Recognized, keys: tuple[str, ...]) -> Draft:
    """The pipeline of what was recognized, which names no schema.

    ``keys`` are the fields of record keys: they name the rows of events. Raises NotInferred where
    no columns hold them.
    """
    if found.kind is Kind.BYTES:
        return Draft(topic, {"format": "raw"}, (Field("value", "BINARY"),), notes=(_BYTES,))
    if found.kind is Kind.TEXT:
        return _of_text(topic, found.values)
    return _of_json(topic, found, keys)


def _of_text(topic: str, values: Sequence[bytes]) -> Draft:
    lines = lines_of(values)
    if lines is None:
        found = infer_lines([seen_texts(values)])
        columns = tuple(replace(each, name="value") for each in found.fields)
        return Draft(topic, {"format": "string", **_settings(found)}, columns)
    found = infer_lines(lines.fields)
    source = {"format": "csv"} | (
        {"csv": {"delimiter": lines.delimiter}} if lines.delimiter != "," else {}
    )
    note = "lines name no columns: give them names"
    return Draft(topic, source | _settings(found), found.fields, notes=(note, *found.notes))


def _of_json(topic: str, found: Recognized, keys: tuple[str, ...]) -> Draft:
    source = {"format": "json"}
    source |= {"framing": "confluent"} if found.kind is Kind.FRAMED_OBJECT else {}
    events = None if found.kind is Kind.ARRAY else events_of(found.documents)
    if events is not None:
        return _of_events(topic, source, events, keys)
    seen, is_array = Seen(), found.kind is Kind.ARRAY
    for document in found.documents:
        for each in document if isinstance(document, list) else [document]:
            seen.add(each)
    if len(seen.members) > _MOST_COLUMNS:
        raise NotInferred(f"its records have {len(seen.members):,} different fields", where=topic)
    if not seen.members:
        raise NotInferred("its records have no fields", where=topic)
    inferred = infer(seen, wires=not is_array)
    return Draft(
        topic,
        source | _settings(inferred),
        inferred.fields,
        each=WHOLE if is_array else "",
        notes=inferred.notes,
    )


def _of_events(
    topic: str, source: Mapping[str, Any], events: Events, keys: tuple[str, ...]
) -> Draft:
    """Events without ``keys`` are appended, each as a row, with what happened."""
    its = events.inferred
    known = {each.name for each in its.fields}
    keys = keys if {*keys} <= known else ()
    settings = {"envelope": DEBEZIUM, **({"key": "json"} if keys else {}), **_settings(its)}
    return Draft(
        topic,
        {**source, **settings},
        its.fields if keys else (*its.fields, Field(OPERATION, "STRING")),
        mode="upsert" if keys else "append",
        keys=keys,
        order=events.order if keys else (),
        notes=(*its.notes, *(() if events.told else (_UNTYPED,))),
    )


def _settings(found: Inferred) -> dict[str, Any]:
    """What the source has to allow."""
    lenient = {"lenient": [*found.lenient]} if found.lenient else {}
    return lenient | ({"timestamps": {"fraction": "cut"}} if found.cut else {})
