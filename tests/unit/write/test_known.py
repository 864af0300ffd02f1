"""Which tables are written as files: what is on the list, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rivermouth.protocol.ways import Definition, why_not

pytestmark = pytest.mark.unit


def field(kind: Any, name: str = "c", *, nullable: bool = True, **metadata: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [*fields]}


def array(element: Any, *, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_of(value: Any, *, contains_null: bool = True) -> dict[str, Any]:
    return {
        "type": "map",
        "keyType": "string",
        "valueType": value,
        "valueContainsNull": contains_null,
    }


PLAIN = Definition(1, 2, frozenset(), {}, schema(field("long")))


@pytest.mark.parametrize(
    ("reader", "writer", "features", "expected"),
    [
        (1, 2, [], ""),
        (1, 3, [], ""),
        (1, 4, [], ""),
        (3, 7, ["appendOnly", "invariants", "deletionVectors", "timestampNtz"], ""),
        (1, 7, ["checkConstraints", "generatedColumns", "changeDataFeed"], ""),
        (2, 5, [], "the table has the protocol 2, 5"),
        (1, 6, [], "the table has the protocol 1, 6"),
        (4, 8, [], "the table has the protocol 4, 8"),
        (1, 7, ["clustering", "domainMetadata"], ""),
        (1, 7, ["rowTracking", "domainMetadata"], "the table has the feature rowTracking"),
    ],
)
def test_protocols(reader: int, writer: int, features: list[str], expected: str) -> None:
    table = replace(PLAIN, reader=reader, writer=writer, features=frozenset(features))
    assert why_not(table) == expected


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("rivermouth.anything", "x", True),
        ("owner", "x", True),
        ("delta.appendOnly", "true", True),
        ("delta.checkpointInterval", "50", True),
        ("delta.checkpointInterval", "0", False),
        ("delta.checkpointInterval", "many", False),
        ("delta.checkpointPolicy", "classic", True),
        ("delta.checkpointPolicy", "v2", False),
        ("delta.columnMapping.mode", "none", True),
        ("delta.columnMapping.mode", "name", False),
        ("delta.constraints.positive", "n > 0", False),
        ("delta.dataSkippingNumIndexedCols", "-1", True),
        ("delta.dataSkippingNumIndexedCols", "-2", False),
        ("delta.dataSkippingStatsColumns", "c", False),
        ("delta.enableChangeDataFeed", "true", True),
        ("delta.enableDeletionVectors", "TRUE", True),
        ("delta.enableInCommitTimestamps", "true", False),
        ("delta.enableInCommitTimestamps", "false", True),
        ("delta.enableRowTracking", "true", False),
        ("delta.isolationLevel", "Serializable", True),
        ("delta.isolationLevel", "WriteSerializable", False),
        ("delta.autoOptimize.autoCompact", "true", False),
        ("delta.autoOptimize.optimizeWrite", "false", True),
        ("DELTA.LOGRETENTIONDURATION", "interval 1 day", True),
        ("delta.logRetentionDuration", "interval 12 weeks", True),
        # Spark reads these, and delta-rs takes 30 days instead.
        ("delta.logRetentionDuration", "90 days", False),
        ("delta.logRetentionDuration", "INTERVAL 90 DAYS", False),
        ("delta.logRetentionDuration", "interval 1 week 83 days", False),
        ("delta.deletedFileRetentionDuration", "interval 90 days", True),
        ("delta.deletedFileRetentionDuration", "interval '90' days", False),
        ("delta.deletedFileRetentionDuration", "90 days", False),
        ("delta.setTransactionRetentionDuration", "interval 1 day", False),
        ("delta.randomizeFilePrefixes", "true", False),
        ("delta.randomizeFilePrefixes", "false", True),
        ("delta.checkpoint.writeStatsAsJson", "true", True),
        ("delta.checkpoint.writeStatsAsJson", "false", False),
        ("delta.universalFormat.enabledFormats", "iceberg", False),
        ("delta.ofALaterDay", "false", False),
    ],
)
def test_properties(name: str, value: str, known: bool) -> None:
    expected = "" if known else f"the table has the property {name} = {value}"
    assert why_not(replace(PLAIN, properties={name: value})) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (field("decimal(12,2)", comment="money"), ""),
        (field("timestamp_ntz"), ""),
        (field(array(schema(field("string")))), ""),
        (field(map_of(array("binary"))), ""),
        (field("variant"), "the column c is of the type variant"),
        (field("void"), "the column c is of the type void"),
        (field("interval day"), "the column c is of the type interval day"),
        (field({"type": "udt"}), "the column c is of the type udt"),
        (field("long", nullable=False), "the column c is NOT NULL"),
        (field(schema(field("long", nullable=False))), "the column c.c is NOT NULL"),
        (field(array("long", contains_null=False)), "c.element may not be null"),
        (field(map_of("long", contains_null=False)), "c.value may not be null"),
        (field(map_of("variant")), "the column c.value is of the type variant"),
        (
            field(array(schema(field("long", nullable=False)))),
            "the column c.element.c is NOT NULL",
        ),
    ],
)
def test_columns(column: dict[str, Any], expected: str) -> None:
    assert why_not(replace(PLAIN, schema=schema(column))) == expected


@pytest.mark.parametrize(
    "mark",
    [
        "delta.generationExpression",
        "delta.identity.start",
        "delta.invariants",
        "CURRENT_DEFAULT",
        "delta.columnMapping.id",
        "__CHAR_VARCHAR_TYPE_STRING",
    ],
)
def test_marks_of_columns(mark: str) -> None:
    table = replace(PLAIN, schema=schema({**field("long"), "metadata": {mark: "x"}}))
    assert why_not(table) == f"the column c has {mark}"


def test_partitions() -> None:
    columns = {"day": "date", "m": "decimal(9,2)", "f": "float", "b": "binary", "t": "timestamp"}
    fields = [field(kind, name) for name, kind in columns.items()]
    table = replace(PLAIN, schema=schema(*fields), partitions=("day", "m"))
    assert why_not(table) == ""
    assert why_not(table, columns) == "the table has no deletion vectors"
    at_times = replace(table, partitions=("day", "t"))
    by_key = "rows are replaced, and the table is partitioned by the time t"
    assert (why_not(at_times), why_not(at_times, columns)) == ("", by_key)
    for name, kind in (("f", "float"), ("b", "binary")):
        said = f"the table is partitioned by {name}, which is of the type {kind}"
        assert why_not(replace(table, partitions=("day", name))) == said


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("134217728", 1 << 27),
        ("128mb", 1 << 27),
        ("64 K", 1 << 16),
        ("1gb", 1 << 30),
        ("5b", 5),
        ("many", None),
        ("-1", None),
    ],
)
def test_the_size_of_files(said: str, size: int | None) -> None:
    assert replace(PLAIN, properties={"delta.targetFileSize": said}).file_bytes == size
    assert PLAIN.file_bytes is None


def test_what_a_table_says_of_itself() -> None:
    says = {"delta.CheckpointInterval": "7", "delta.dataSkippingNumIndexedCols": "3"}
    told = replace(
        PLAIN,
        features=frozenset({"deletionVectors"}),
        properties={**says, "delta.enableExpiredLogCleanup": "false"},
    )
    assert (told.checkpoint_interval, told.indexed) == (7, 3)
    assert (told.tight, told.cleans_up) == (True, False)
    assert (PLAIN.checkpoint_interval, PLAIN.indexed) == (10, 32)
    assert (PLAIN.tight, PLAIN.cleans_up) == (False, True)
