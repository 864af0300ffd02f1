"""Events of change streams: what the writer makes of each, and that verify judges alike."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Config, load
from rivermouth.errors import ConfigError
from rivermouth.formats.tasks import decoder_of
from rivermouth.verification.formats.reader import GONE, NoRow, Undecodable, Untold
from rivermouth.verification.proofs.decoding import EntryReaders
from tests.unit.formats.test_required import batch
from tests.unit.verification.doubles import (
    SCHEMA,
    MemorySource,
    configured,
    entry,
    message,
    span,
    subject,
)

pytestmark = pytest.mark.unit

FILE = """\
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: ./lake
pipelines:
  p:
    source: {topics: [t], format: json, envelope: %s}
    schema: %s
    columns: %s
    target: %s
"""
UPSERT = "{table: s.t, mode: upsert, keys: [id], order_by: [lsn]}"
APPEND = "{table: s.t}"
COLUMNS = "id BIGINT, n STRING NOT NULL, lsn BIGINT"
STAYS = "id BIGINT, n STRING, lsn BIGINT, _op STRING"
LSN = "{lsn: {from: $.source.lsn}}"
OWN = "{op: meta.kind, data: row, before: old, delete_when: [gone], skip_when: [beat]}"
BARE = "{op: op, delete_when: [D, d]}"


def loaded(folder: Path, envelope: str, columns: str, paths: str, target: str) -> Config:
    file = folder / "rivermouth.yml"
    file.write_text(FILE % (envelope, columns, paths, target), encoding="utf-8")
    return load(file)


def debezium(op: str | None, lsn: int | None = None, **rows: Any) -> dict[str, Any]:
    return {"op": op, "source": {"lsn": lsn}, "before": None, "after": None, **rows}


KEEPS = "__debezium_unavailable_value"
ROW = {"id": 1, "n": "x", "other": [1]}
Case = tuple[Any, str | None, dict[str, Any] | None, bool]
"""A value, its code, its row, and whether that goes."""
PUT = {"id": 1, "n": "x", "lsn": 7}
GOES = {"id": 1, "n": None, "lsn": 9}
AS_THEY_STAND: list[Case] = [
    (debezium("c", 7, after=ROW), None, PUT, False),
    (debezium("r", 7, after=ROW), None, PUT, False),
    (debezium("u", 7, before={"id": 1, "n": "?"}, after=ROW), None, PUT, False),
    (debezium("u", 7, before={"id": 5, "n": "?"}, after=ROW), "RM618", None, False),
    ({"schema": {"type": "struct"}, "payload": debezium("c", 7, after=ROW)}, None, PUT, False),
    (debezium("d", 9, before={"id": 1}), None, GOES, True),
    (debezium("d", 9, before={"id": 1, "n": 5}), None, GOES, True),
    ({"payload": debezium("d", 9, before={"id": 1, "n": ""})}, None, GOES, True),
    (None, "skipped", None, False),
    (debezium("m", 3), "skipped", None, False),
    (debezium("t", 3), "RM616", None, False),
    (debezium("u", 7, after={**ROW, "n": KEEPS}), None, {**PUT, "n": KEEPS}, False),
    (debezium("c", 7, after={**ROW, "n": KEEPS}), "RM617", None, False),
    (debezium("x", 3, after=ROW), "RM615", None, False),
    (debezium(None, 3, after=ROW), "RM615", None, False),
    (debezium("c", 3), "RM615", None, False),
    (debezium("d", 3), "RM615", None, False),
    (debezium("d", None, before={"id": 1}), "RM615", None, False),
    (debezium("c", 3, after={"id": 1}), "RM614", None, False),
    (debezium("c", after={"strange": 1}), "RM610", None, False),
    (debezium("c", 3, after={"id": "one", "n": "x"}), "RM603", None, False),
    (debezium("d", 3, before={"id": None}), "RM605", None, False),
    ({"id": 1, "n": "x"}, "RM610", None, False),
    (b"[", "RM603", None, False),
    (b"", "RM602", None, False),
]
OLD = {"id": 1, "n": "y", "lsn": 9, "_op": "d"}
ALL_EVENTS: list[Case] = [
    (debezium("u", 7, before={"id": 5, "n": "?"}, after=ROW), None, {**PUT, "_op": "u"}, False),
    (debezium("d", 9, before={"id": 1, "n": "y"}), None, OLD, False),
    (debezium("d", 9, before={"id": 1, "n": None}), "RM614", None, False),
    (None, "skipped", None, False),
]
STAYING: list[Case] = [
    (debezium("d", 9, before={"id": 1, "n": "y"}), None, OLD, False),
    (debezium("d", 9, before={"id": 1}), None, {**OLD, "n": None}, False),
    (debezium("d", None, before={"id": 1, "n": "y"}), "RM615", None, False),
    (debezium("u", 7, after={**ROW, "n": KEEPS}), None, {**PUT, "n": KEEPS, "_op": "u"}, False),
    (None, "skipped", None, False),
]
BY_PATHS: list[Case] = [
    ({"meta": {"kind": "put"}, "row": ROW}, None, {"id": 1, "n": "x"}, False),
    ({"meta": {"kind": "gone"}, "old": {"id": 1}}, None, {"id": 1, "n": None}, True),
    ({"meta": {"kind": "beat"}}, "skipped", None, False),
    ({"meta": {"kind": "put"}, "row": ROW, "old": {"id": 5}}, "RM618", None, False),
    ({"row": ROW}, "RM615", None, False),
    ({"meta": {"kind": "gone"}, "row": ROW}, "RM615", None, False),
]
BESIDE_THE_ROW: list[Case] = [
    ({"op": "I", **ROW}, None, {"id": 1, "n": "x"}, False),
    ({"op": "D", "id": 1}, None, {"id": 1, "n": None}, True),
    ({"op": "d", "id": 1, "n": "x"}, None, {"id": 1, "n": None}, True),
    (ROW, "RM615", None, False),
]
DMS: list[Case] = [
    ({"data": ROW, "metadata": {"operation": "load"}}, None, {"id": 1, "n": "x"}, False),
    ({"data": ROW, "metadata": {"operation": "delete"}}, None, {"id": 1, "n": None}, True),
    ({"metadata": {"operation": "create-table"}}, "skipped", None, False),
    ({"metadata": {"operation": "truncate-table"}}, "RM616", None, False),
]
MAXWELL: list[Case] = [
    ({"type": "insert", "data": ROW}, None, {"id": 1, "n": "x"}, False),
    ({"type": "update", "data": ROW, "old": {"n": "y"}}, None, {"id": 1, "n": "x"}, False),
    ({"type": "update", "data": ROW, "old": {"id": 5}}, "RM618", None, False),
    ({"type": "delete", "data": ROW}, None, {"id": 1, "n": None}, True),
    ({"type": "bootstrap-start", "data": {}}, "skipped", None, False),
]
OTHER = {"id": 2, "n": "z"}
CANAL: list[Case] = [
    ({"type": "INSERT", "data": [ROW]}, None, {"id": 1, "n": "x"}, False),
    ({"type": "UPDATE", "data": [ROW], "old": [{"n": "y"}]}, None, {"id": 1, "n": "x"}, False),
    ({"type": "UPDATE", "data": [ROW], "old": [{"id": 5}]}, "RM618", None, False),
    ({"type": "DELETE", "data": [ROW]}, None, {"id": 1, "n": None}, True),
    ({"type": "INSERT", "data": [ROW, OTHER]}, "RM615", None, False),
    ({"type": "UPDATE", "data": [ROW, ROW], "old": [{}, {}]}, "RM615", None, False),
    ({"type": "DELETE", "data": [OTHER, ROW]}, "RM615", None, False),
    ({"type": "DELETE", "data": []}, "RM615", None, False),
    ({"type": "INSERT", "data": None}, "RM615", None, False),
    ({"type": "ALTER", "data": None}, "skipped", None, False),
    ({"type": "ALTER", "data": [ROW, OTHER]}, "skipped", None, False),
]
ARRAYS = '{op: type, data: "data[0]", old: "old[0]", delete_when: [DELETE], skip_when: [ALTER]}'
PLAIN = "id BIGINT, n STRING"
BY_ID = "{table: s.t, mode: upsert, keys: [id]}"
TABLES: dict[str, tuple[str, str, str, str, list[Case]]] = {
    "as they stand": ("debezium", COLUMNS, LSN, UPSERT, AS_THEY_STAND),
    "all events": ("debezium", f"{COLUMNS}, _op STRING", LSN, APPEND, ALL_EVENTS),
    "staying": ("debezium, on_delete: row", STAYS, LSN, UPSERT, STAYING),
    "by paths": (OWN, PLAIN, "{}", BY_ID, BY_PATHS),
    "beside the row": (BARE, PLAIN, "{}", BY_ID, BESIDE_THE_ROW),
    "dms": ("dms", PLAIN, "{}", BY_ID, DMS),
    "canal": (ARRAYS, PLAIN, "{}", BY_ID, CANAL),
    "maxwell": ("maxwell", PLAIN, "{}", BY_ID, MAXWELL),
}


@pytest.mark.parametrize("table", TABLES)
def test_each_event_becomes_what_it_says(tmp_path: Path, table: str) -> None:
    *given, cases = TABLES[table]
    decode = decoder_of(loaded(tmp_path, *given).pipelines["p"])

    found = decode(batch([_bytes(value) for value, *_ in cases]))

    assert found.column("code").to_pylist() == [code for _, code, _, _ in cases]
    rows, gone = found.column("row").to_pylist(), found.column("tombstone").to_pylist()
    for case, row, goes in zip(cases, rows, gone, strict=True):
        value, code, expected, goes_expected = case
        if code is None:
            assert (row, goes) == (expected, goes_expected), value


@pytest.mark.parametrize(
    ("columns", "paths", "target", "part"),
    [
        ("_op STRING, lsn BIGINT", LSN, APPEND, "data in after"),
        (COLUMNS, "{id: {from: $.source.id}, lsn: {from: $.source.lsn}}", UPSERT, "before in"),
    ],
)
def test_events_of_whose_row_nothing_is_taken_are_refused(
    tmp_path: Path, columns: str, paths: str, target: str, part: str
) -> None:
    with pytest.raises(ConfigError, match=part):
        loaded(tmp_path, "debezium", columns, paths, target)


def test_what_stands_beside_the_row_is_not_written_as_the_connector_writes_rows(
    tmp_path: Path,
) -> None:
    paths = "{scn: {from: $.source.scn}}"
    columns = "id BIGINT, price DECIMAL(9,2), scn DECIMAL(38,0)"
    target = UPSERT.replace("lsn", "scn")
    pipeline = loaded(tmp_path, "debezium", columns, paths, target).pipelines["p"]
    assert pipeline.wires == {"price": "unscaled"}
    made = decoder_of(pipeline)(
        batch(
            [
                _bytes(
                    {
                        "op": "c",
                        "after": {"id": 1, "price": "AA=="},
                        "source": {"scn": "100000000000"},
                    }
                )
            ]
        )
    )
    assert made.column("row").to_pylist()[0]["scn"] == 100_000_000_000


OWN_PLACEHOLDER = '{debezium: {unavailable.value.placeholder: "né"}}'
BYTES = base64.b64encode("né".encode()).decode()
FORMS: list[tuple[str, pa.DataType, Any, Any]] = [
    ("STRING", pa.string(), "né", "n"),
    ("STRING", pa.string(), '{"né":"né"}', '{"né":"n"}'),
    ("BINARY", pa.binary(), BYTES, "AAAA"),
    ("ARRAY<STRING>", pa.list_(pa.string()), ["né"], ["né", "né"]),
    ("ARRAY<STRING>", pa.list_(pa.string()), ["4b412f21-7a89-313f-be32-1f48d3273a0a"], [None]),
    ("ARRAY<BINARY>", pa.list_(pa.binary()), [BYTES], ["AAAA"]),
    ("ARRAY<INT>", pa.list_(pa.int32()), [110, -61, -87], [110, -61, -88]),
    ("ARRAY<BIGINT>", pa.list_(pa.int64()), [110, -61, -87], [110, None, -87]),
    ("MAP<STRING, STRING>", pa.map_(pa.string(), pa.string()), {"né": "né"}, {"né": None}),
]


@pytest.mark.parametrize(("kind", "arrow", "untold", "told"), FORMS)
def test_each_type_has_a_form_for_what_is_not_told(
    tmp_path: Path, kind: str, arrow: pa.DataType, untold: Any, told: Any
) -> None:
    config = loaded(tmp_path, OWN_PLACEHOLDER, f"id BIGINT, n {kind}", "{}", BY_ID)
    pipeline = config.pipelines["p"]
    values = [json.dumps(debezium("u", after={"id": 1, "n": n})).encode() for n in (told, untold)]

    kept = decoder_of(pipeline)(batch([*values, *values])).column("kept").to_pylist()

    assert kept == [None, ["n"], None, ["n"]]
    its = entry(1, span(0, 9), decoder=pipeline.decoder, columns=("id", "n"))
    schema = pa.schema([("id", pa.int64()), ("n", arrow)])
    readers = EntryReaders(subject(config, MemorySource(), its), schema, ["n"])
    read = [readers.of(0)(each)[0] for each in values]
    assert [isinstance(each, Untold) for each in read] == [False, True]


@pytest.mark.parametrize("table", TABLES)
def test_verify_reads_each_event_alike(tmp_path: Path, table: str) -> None:
    *given, cases = TABLES[table]
    config = loaded(tmp_path, *given)
    pipeline = config.pipelines["p"]
    names = [each.name for each in pipeline.columns]
    its = entry(1, span(0, 99), decoder=pipeline.decoder, columns=tuple(names))
    kinds = {"BIGINT": pa.int64(), "STRING": pa.string()}
    schema = pa.schema([(each.name, kinds[each.type]) for each in pipeline.columns])
    readers = EntryReaders(subject(config, MemorySource(), its), schema, [*names, GONE])
    for value, code, row, goes in cases:
        given_bytes = _bytes(value)
        if given_bytes is None or not given_bytes:
            continue
        if code in ("RM605",):  # whoever reads keys judges that
            continue
        if code == "skipped":
            with pytest.raises(NoRow):
                readers.of(0)(given_bytes)
            assert readers.tells_of_no_row(0, message(0, given_bytes))
        elif code is not None:
            with pytest.raises(Undecodable):
                readers.of(0)(given_bytes)
        else:
            assert row is not None
            due = (Untold(row[each]) if row[each] == KEEPS else row[each] for each in names)
            assert readers.of(0)(given_bytes) == (*due, goes), value


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def test_a_placeholder_in_octets_is_refused(tmp_path: Path) -> None:
    envelope = '{debezium: {unavailable.value.placeholder: "hex:00ff"}}'
    with pytest.raises(ConfigError, match="write hex: octets as the text that they are"):
        loaded(tmp_path, envelope, PLAIN, "{}", BY_ID)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b'{"Id": 7}', 7),
        (b'{"schema": {"type": "struct"}, "payload": {"Id": 7}}', 7),
        (b'{"id": 7}', None),
        (None, None),
    ],
)
def test_a_tombstone_names_its_row_as_events_do(
    tmp_path: Path, key: bytes | None, expected: int | None
) -> None:
    its = {"key": "json", "envelope": "debezium"}
    config = configured(tmp_path, mode="upsert", keys=["id"], columns={"id": {"from": "Id"}}, **its)
    pipeline = config.pipelines["p"]
    raw = batch([None]).set_column(0, "key", pa.array([key], pa.binary()))

    made = decoder_of(pipeline)(raw)

    assert made.column("key_columns").to_pylist() == [{"id": expected}]
    assert made.column("code").to_pylist() == [None if expected else "RM604"]
    asked = subject(config, MemorySource(), entry(1, span(0, 9), decoder=pipeline.decoder))
    read = EntryReaders(asked, SCHEMA, ["id"]).of_keys(0)
    assert read is not None
    if key is not None:
        assert read(key) == (expected,)
    assert not asked.skips.any()


def test_a_deletion_that_stays_as_a_row_leaves_nothing_as_it_was(tmp_path: Path) -> None:
    config = loaded(tmp_path, "debezium, on_delete: row", STAYS, LSN, UPSERT)
    told = debezium("d", 9, before={"id": 1, "n": "y"}, after={"id": 1, "n": KEEPS})
    made = decoder_of(config.pipelines["p"])(batch([_bytes(told), _bytes(told)]))
    assert made.column("kept").to_pylist() == [None, None]
    assert made.column("row").to_pylist() == [OLD, OLD]
