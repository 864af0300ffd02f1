"""The checker reads every record as the writer's decoder does: one table for both, a real Spark.

Version 1 of the decoder is Spark's ``from_json``, version 2 follows docs/json.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Pipeline
from rivermouth.config.registry import FORMATS
from rivermouth.formats.decoder import decoder
from rivermouth.verify.formats.from_json.reader import reader as reader_of_version_1
from rivermouth.verify.formats.json import reader as reader_of_version_2
from rivermouth.verify.formats.keys import string as as_text
from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Reader, Undecodable
from rivermouth.verify.tables.ports import canonical
from tests.kinds.first_json import FIRST_JSON
from tests.spark.conftest import Bench, a_pipeline
from tests.spark.json_documents import DOCUMENT_COLUMNS, DOCUMENTS, KEYS, TYPES, UNTOLD, VALUES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BAD = "in quarantine"
UNSURE = "cannot tell"


def pipeline(columns: str) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "columns": columns,
            "target": {"table": "bronze.p"},
        }
    )


def written(
    bench: Bench, columns: str, values: Sequence[bytes], version: int
) -> tuple[list[Any], pa.Schema]:
    """What the writer makes of each value: a row, or ``BAD``; and the schema of the rows."""
    raw = bench.raw((None, value, 0, at) for at, value in enumerate(values))
    with pytest.MonkeyPatch.context() as patch:
        if version == 1:
            patch.setitem(FORMATS.by_name, "json", FIRST_JSON)
        decoded = decoder(pipeline(columns))(raw)
    table = decoded.select("_kafka.offset", "code", "row.*").toArrow()
    names = table.schema.names[2:]
    found: list[Any] = [None] * len(values)
    for batch in table.to_batches():
        plain = canonical(batch).to_pylist()
        for row in plain:
            good = row["code"] is None
            found[row["offset"]] = tuple(row[name] for name in names) if good else BAD
    return found, pa.schema([table.schema.field(name) for name in names])


def read(schema: pa.Schema, values: Sequence[bytes], version: int) -> list[Any]:
    """What the checker makes of each value."""
    names = schema.names
    as_reader: Reader = (
        reader_of_version_1(schema, names)
        if version == 1
        else reader_of_version_2(schema, names, {})
    )
    found: list[Any] = []
    for value in values:
        try:
            row = as_reader(value)
            found.append(UNSURE if any(each is NOT_VERIFIABLE for each in row) else row)
        except Undecodable:
            found.append(BAD)
        except CannotTell:
            found.append(UNSURE)
    return found


def differing(values: Sequence[bytes], wrote: Sequence[Any], read: Sequence[Any]) -> list[str]:
    """The values of which the two make something else."""
    return [
        f"{value[:80]!r}: the writer has {one!r:.80}, the checker {other!r:.80}"
        for value, one, other in zip(values, wrote, read, strict=True)
        if other != one and repr(other) != repr(one) and other != UNSURE
    ]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", TYPES)
def test_each_value_becomes_what_the_writer_made_of_it(
    bench: Bench, kind: str, version: int
) -> None:
    values = [b'{"v":' + text.encode("utf-8", "surrogatepass") + b"}" for text in VALUES]
    wrote, schema = written(bench, f"v {kind}", values, version)
    found = read(schema, values, version)
    assert differing(values, wrote, found) == []
    unsure = [text for text, each in zip(VALUES, found, strict=True) if each == UNSURE]
    if version == 2:
        assert unsure == []
    elif kind == "BINARY":  # control characters inside of the text
        assert set(unsure) <= {'"a\tb"', '"a\nb"'}
    else:
        assert unsure == [*UNTOLD.get(kind, ())]


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
            found.append(as_text(schema, ["v"])(key))
        except Undecodable:
            found.append(BAD)
        except CannotTell:
            found.append(UNSURE)
    assert differing(keys, wrote, found) == []


@pytest.mark.parametrize("version", [1, 2])
def test_each_document_becomes_what_the_writer_made_of_it(bench: Bench, version: int) -> None:
    wrote, schema = written(bench, DOCUMENT_COLUMNS, DOCUMENTS, version)
    found = read(schema, DOCUMENTS, version)
    assert differing(DOCUMENTS, wrote, found) == []
    assert UNSURE not in found
