"""The checker reads every record as the writer's decoder does: one table for both, a real Spark.

In the same way it reads what Spark writes of the row, for a pipeline that sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.verification.formats.json import reader, sent
from rivermouth.verification.formats.keys import string as as_text
from rivermouth.verification.formats.reader import FIELDS, CannotTell, Reader, Undecodable
from rivermouth.verification.tables.ports import canonical
from rivermouth.write.sinks import value_of
from tests.spark.conftest import Bench, a_pipeline
from tests.spark.json_documents import DOCUMENT_COLUMNS, DOCUMENTS, KEYS, TYPES, VALUES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BAD = "in quarantine"
UNSURE = "cannot tell"


def pipeline(columns: str) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": columns,
            "target": {"table": "bronze.p"},
        }
    )


def written(
    bench: Bench, columns: str, values: Sequence[bytes]
) -> tuple[list[Any], list[Any], pa.Schema]:
    """What the writer makes of each value: a row, or ``BAD``; what it sends of the row, or None;
    and the schema of the rows.
    """
    raw = bench.raw((None, value, 0, at) for at, value in enumerate(values))
    rows = decoder(pipeline(columns))(raw)
    table = rows.select("_kafka.offset", "code", value_of().alias("sent"), "row.*").toArrow()
    names = table.schema.names[3:]
    found: list[Any] = [None] * len(values)
    sends: list[Any] = [None] * len(values)
    for batch in table.to_batches():
        for row in canonical(batch).to_pylist():
            good = row["code"] is None
            found[row["offset"]] = tuple(row[name] for name in names) if good else BAD
            sends[row["offset"]] = row["sent"].encode() if good else None
    return found, sends, pa.schema([table.schema.field(name) for name in names])


def read(as_reader: Reader, values: Sequence[bytes | None]) -> list[Any]:
    """What the checker makes of each value."""
    found: list[Any] = []
    for value in values:
        try:
            found.append(BAD if value is None else as_reader(value))
        except Undecodable:
            found.append(BAD)
    return found


def differing(values: Sequence[bytes], wrote: Sequence[Any], read: Sequence[Any]) -> list[str]:
    """The values of which the two make something else."""
    return [
        f"{value[:80]!r}: the writer has {one!r:.80}, the checker {other!r:.80}"
        for value, one, other in zip(values, wrote, read, strict=True)
        if other != one and repr(other) != repr(one) and other != UNSURE
    ]


@pytest.mark.parametrize("kind", TYPES)
def test_each_value_becomes_what_the_writer_made_of_it(bench: Bench, kind: str) -> None:
    values = [b'{"v":' + text.encode("utf-8", "surrogatepass") + b"}" for text in VALUES]
    wrote, sends, schema = written(bench, f"v {kind}", values)
    assert differing(values, wrote, read(reader(schema, schema.names, {}), values)) == []
    assert differing(values, wrote, read(sent(schema, schema.names), sends)) == []


KEY_TYPES = [each for each in TYPES if "<" not in each and each not in ("FLOAT", "DOUBLE")]


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_each_message_key_names_the_row_that_the_writer_took(bench: Bench, kind: str) -> None:
    keys = [text.encode("utf-8", "surrogatepass") for text in KEYS]
    config = a_pipeline(schema=f"v {kind}", keys=("v",), order_by=(), key="string")
    raw = bench.raw((key, None, 0, at) for at, key in enumerate(keys))
    decoded = decoder(config)(raw).select("_kafka.offset", "code", "key_columns.v").toArrow()
    rows = [row for batch in decoded.to_batches() for row in canonical(batch).to_pylist()]
    wrote = [
        (row["v"],) if row["code"] is None else BAD
        for row in sorted(rows, key=itemgetter("offset"))
    ]
    schema = pa.schema([decoded.schema.field("v")])
    found: list[Any] = []
    for key in keys:
        try:
            found.append(as_text(schema, ["v"], {})(key))
        except Undecodable:
            found.append(BAD)
        except CannotTell:
            found.append(UNSURE)
    assert differing(keys, wrote, found) == []


def test_each_document_becomes_what_the_writer_made_of_it(bench: Bench) -> None:
    wrote, sends, schema = written(bench, DOCUMENT_COLUMNS, DOCUMENTS)
    known = reader(schema, schema.names, {FIELDS: schema.names})
    assert differing(DOCUMENTS, wrote, read(known, DOCUMENTS)) == []
    assert differing(DOCUMENTS, wrote, read(sent(schema, schema.names), sends)) == []
