"""What ``init`` reads and writes: ranges of samples, names, YAML; evidence of keys; events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from rivermouth.errors import NotInferred
from rivermouth.operate.by_schema import draft_by_schema
from rivermouth.operate.by_values import draft_by_values
from rivermouth.operate.drafts import Connection, Draft, file_text, flow, names_of
from rivermouth.operate.infer import configured, sample_ranges
from rivermouth.protocol.offsets import TopicPartition, Watermarks
from rivermouth.schemas.inferred import Field
from rivermouth.schemas.key_evidence import candidates, key_names
from rivermouth.schemas.recognized import recognize
from rivermouth.schemas.registry import Schema

pytestmark = pytest.mark.unit

HERE = Connection({"bootstrap.servers": "localhost:9092"}, "http://localhost:8081")


@pytest.mark.parametrize(
    ("marks", "most", "ranges"),
    [
        ([(0, 5)], 100, [{0: (0, 5)}]),
        ([(10, 1000)], 100, [{0: (10, 60)}, {0: (950, 1000)}]),
        ([(0, 60)], 100, [{0: (0, 50)}, {0: (50, 60)}]),
        ([(0, 9), (3, 3), (0, 100)], 20, [{0: (0, 5), 2: (0, 5)}, {0: (5, 9), 2: (95, 100)}]),
        ([(0, 9)] * 10, 4, [{0: (0, 1), 5: (0, 1)}, {0: (8, 9), 5: (8, 9)}]),
        ([(0, 9)], 1, [{0: (0, 1)}, {0: (8, 9)}]),
        ([(7, 7)], 10, []),
        ([], 10, []),
    ],
)
def test_the_first_and_the_newest_offsets_are_looked_at(
    marks: list[tuple[int, int]], most: int, ranges: list[dict[int, tuple[int, int]]]
) -> None:
    given_ = {TopicPartition("t", n): Watermarks(*each) for n, each in enumerate(marks)}
    found = sample_ranges(given_, most)
    assert [{place.partition: its for place, its in each.items()} for each in found] == ranges


def test_each_topic_has_a_name_of_its_own() -> None:
    topics = (
        "Shop.Orders",
        "shop-orders",
        "1st",
        "__x",
        "a_quarantine",
        "é" * 3,
        "x" * 90,
        "x" * 91,
    )
    assert [*names_of(topics).values()] == [
        *("shop_orders", "shop_orders_2", "topic_1st", "x", "a_quarantine_records", "topic"),
        *("x" * 63, f"{'x' * 59}_2"),
    ]


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_yaml_reads_what_is_written(value: Any) -> None:
    text = flow({"it": value})
    assert YAML(typ="safe").load(text) == {"it": value}


@pytest.mark.parametrize(
    "word", ["1.5", "yes", "null", "~", "a: b", "x:", "#", "- a", ".inf", "1e3"]
)
def test_words_that_yaml_would_read_otherwise_are_quoted(word: str) -> None:
    assert flow(word) == f'"{word}"'


def row(**values: Any) -> dict[str, Any]:
    return values


ROWS = [row(id=n, name=f"n{n}", kind="x", flag=True, ratio=0.5 + n) for n in range(12)]


@pytest.mark.parametrize(
    ("rows", "keys", "said"),
    [
        (
            ROWS,
            [str(each["id"]).encode() for each in ROWS],
            ["id: unique in 12 of 12 samples, and equal to the record key in all"],
        ),
        (
            ROWS * 2,
            [each["id"].to_bytes(8, "big") for each in ROWS * 2],
            ["id: different in 12 of 24 samples, and equal to the record key in all"],
        ),
        (
            ROWS,
            [json.dumps({"id": each["id"], "kind": "x"}).encode() for each in ROWS],
            ["id, kind: unique in 12 of 12 samples, and equal to the record key in all"],
        ),
        (
            ROWS,
            [None] * 12,
            ["id: unique in 12 of 12 samples", "name: unique in 12 of 12 samples"],
        ),
        (
            ROWS,
            [b'{"id": 1}'] * 12,
            ["id: unique in 12 of 12 samples", "name: unique in 12 of 12 samples"],
        ),
        (ROWS[:5], [None] * 5, []),
        ([row(id=None)] * 12, [None] * 12, []),
        ([], [], []),
    ],
)
def test_what_may_be_the_key_and_why(
    rows: list[dict[str, Any]], keys: list[bytes | None], said: list[str]
) -> None:
    assert [each.evidence for each in candidates(rows, keys)] == said


def test_the_fields_of_a_record_key() -> None:
    assert key_names(b'{"schema": {}, "payload": {"id": 7}}') == ("id",)
    assert key_names(b'{"a": 1, "b": 2}') == ("a", "b")
    assert key_names(b"7") == key_names(None) == ()


ROW = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
EVENT = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
    ],
}


@pytest.mark.parametrize(
    ("key", "mode", "columns"),
    [
        (("avro", ("id",)), "upsert", ["id BIGINT", "name STRING", "lsn BIGINT"]),
        (("avro", ("number",)), "append", ["id BIGINT", "name STRING", "_op STRING"]),
        (("", ()), "append", ["id BIGINT", "name STRING", "_op STRING"]),
    ],
)
def test_events_of_avro_are_rows_by_key(
    key: tuple[str, tuple[str, ...]], mode: str, columns: list[str]
) -> None:
    draft = draft_by_schema("t", Schema("AVRO", json.dumps(EVENT), {}), b"", "header", key)
    assert draft.schema.split(",\n") == columns
    [pipeline] = configured(HERE, [draft], "lake.yml").pipelines.values()
    assert pipeline.target.mode == mode
    assert pipeline.target.order_by == (("lsn",) if mode == "upsert" else ())
    assert pipeline.source.key == ("avro" if mode == "upsert" else None)


def test_what_no_column_holds_is_said() -> None:
    text = json.dumps({**ROW, "fields": [{"name": "x", "type": ["string", "long"]}]})
    with pytest.raises(NotInferred, match="x is a union of types that share no column"):
        draft_by_schema("t", Schema("AVRO", text, {}), b"", "confluent", ("", ()))


def connect(op: str, after: Any, wrapped: bool = True) -> bytes:
    decimal = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    }
    fields = [
        {"field": "id", "type": "int64"},
        {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "seen", "type": "int64", "name": "io.debezium.time.NanoTimestamp"},
        {"field": "paid", **decimal},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": fields, "field": "after"}]}
    source = {"connector": "oracle", "scn": "7"}
    payload = {"op": op, "before": None, "after": after, "source": source}
    return json.dumps({"schema": schema, "payload": payload} if wrapped else payload).encode()


def test_records_of_debezium_tell_the_types_of_the_source() -> None:
    after = {"id": 1, "born": 20_000, "seen": 1, "paid": "AfQ=", "tags": ["a"]}
    found = recognize([connect("c", after)])
    assert not isinstance(found, str)
    draft = draft_by_values("t", found, ("id",))
    assert draft.schema.split(",\n") == [
        *("id BIGINT", "born DATE", "seen TIMESTAMP_NTZ", "paid DECIMAL(12,2)"),
        *("tags ARRAY<STRING>", "scn DECIMAL(38,0)"),
    ]
    assert draft.placed == {"seen": {"as": "ns"}, "scn": {"from": "$.source.scn"}}
    assert (draft.mode, draft.keys, draft.source["key"]) == ("upsert", ("id",), "json")
    without = draft_by_values("t", found, ("number",))
    assert (without.mode, without.schema.split(",\n")[-1]) == ("append", "_op STRING")


def test_a_record_that_is_no_event_does_not_hide_the_others() -> None:
    events = [connect("c", {"id": n}, wrapped=False) for n in range(10)]
    found = recognize([*events, b'{"heartbeat": 1}'])
    assert not isinstance(found, str)
    assert draft_by_values("t", found, ("id",)).source["envelope"] == "debezium"


def test_of_bare_events_days_are_a_number_that_a_comment_explains() -> None:
    found = recognize([connect("r", {"id": 1, "born": 20_000}, wrapped=False)])
    assert not isinstance(found, str)
    draft = draft_by_values("t", found, ("id",))
    assert draft.schema.split(",\n")[:2] == ["id BIGINT", "born BIGINT"]
    assert draft.notes[0].startswith("born: may be days since 1970")


def test_a_comment_is_in_short_lines_that_no_text_can_leave() -> None:
    notes = ("x " * 200, "a\u0000b\nversion: 2")
    text = file_text(HERE, [Draft("t", {"format": "raw"}, (Field("v", "BINARY"),), notes=notes)])
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("version:") == 2
    assert "# a?b?version: 2" in text
