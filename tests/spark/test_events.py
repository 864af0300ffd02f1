"""Events of a change stream, by each way in which rows by key land."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.protocol.entry import RowCounts
from tests.spark.batch_table import WAYS, BatchTable, keyed_table
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BOTH_LONG = pytest.mark.takes_long(
    "as they came-replaceUsing", "by position-replaceUsing", "by position-MERGE"
)
KEEPS = "__debezium_unavailable_value"
Batch = list[RawRow]
State = dict[int, tuple[Any, ...]]


def a_pipeline(*order_by: str, **reading: str) -> Pipeline:
    source = {"topics": ("t",), "format": "json", "envelope": "debezium", **reading}
    target = {"table": "silver.t", "mode": "upsert", "keys": ("id",), "order_by": order_by}
    columns = {"lsn": {"from": "$.source.lsn"}}
    schema = "id BIGINT, n INT, note STRING, lsn BIGINT"
    schema += ", _op STRING" if "on_delete" in reading else ""
    given = {"name": "p", "source": source, "ddl": schema, "columns": columns, "target": target}
    return Pipeline.model_validate(given)


class Stream:
    """Events with rising offsets in partition 0."""

    def __init__(self) -> None:
        self.offset = 0

    def __call__(self, op: str, id_: int, n: int = 0, note: Any = None, lsn: int = 0) -> RawRow:
        row = {"id": id_, "n": n, "note": note}
        deletes = op == "d"
        event: dict[str, Any] = {"op": op, "source": {"lsn": lsn or self.offset}}
        event |= {"before": {"id": id_} if deletes else None, "after": None if deletes else row}
        return self.record(json.dumps(event).encode())

    def record(self, value: bytes | None) -> RawRow:
        self.offset += 1
        return (None, value, 0, self.offset - 1)


def state_of(table: BatchTable) -> State:
    rows = [each for each in table.rows() if not each.get("_tombstone")]
    return {each["id"]: (each["n"], each["note"]) for each in rows}


@BOTH_LONG
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order_by", [(), ("lsn",)], ids=["as they came", "by position"])
def test_the_table_is_what_the_events_leave(
    bench: Bench, way: str, order_by: tuple[str, ...]
) -> None:
    table, event = keyed_table(bench, a_pipeline(*order_by), way), Stream()
    table.land([event("r", 1, 1, "a"), event("c", 2, 2, "b"), event("c", 3, 3)])
    assert state_of(table) == {1: (1, "a"), 2: (2, "b"), 3: (3, None)}

    table.land([event("u", 1, 10, "aa"), event("d", 2), event.record(None), event("c", 4, 4)])
    assert state_of(table) == {1: (10, "aa"), 3: (3, None), 4: (4, None)}
    if way == "files":
        assert table.entry.rows == (RowCounts(3, 0, 1),)

    # In one batch: put and gone, gone and put again, gone and never there.
    table.land([event("c", 5), event("d", 5), event("d", 1), event("c", 1, 7), event("d", 99)])
    assert state_of(table) == {1: (7, None), 3: (3, None), 4: (4, None)}


@pytest.mark.takes_long("replaceUsing", "MERGE")
@pytest.mark.parametrize("way", WAYS)
def test_an_older_deletion_takes_no_newer_row(bench: Bench, way: str) -> None:
    table, event = keyed_table(bench, a_pipeline("lsn"), way), Stream()
    table.land([event("c", 1, 1, lsn=30)])
    table.land([event("d", 1, lsn=20), event("c", 2, 2, lsn=21)])
    assert state_of(table) == {1: (1, None), 2: (2, None)}
    table.land([event("d", 1, lsn=40), event("u", 1, 5, lsn=35)])
    assert state_of(table) == {2: (2, None)}


@pytest.mark.takes_long("replaceUsing", "MERGE")
@pytest.mark.parametrize("way", WAYS)
def test_a_row_that_stays_deleted_is_not_brought_back(bench: Bench, way: str) -> None:
    table, event = keyed_table(bench, a_pipeline("lsn", on_delete="row"), way), Stream()
    table.land([event("c", 1, 1, "a", lsn=10), event("d", 2, lsn=11)])
    table.land([event("d", 1, lsn=30), event.record(None)])
    table.land([event("u", 1, 5, "late", lsn=20), event("c", 2, 2, "b", lsn=31)])
    assert state_of(table) == {1: (None, None), 2: (2, "b")}
    assert {each["id"]: each["_op"] for each in table.rows()} == {1: "d", 2: "c"}


@BOTH_LONG
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order_by", [(), ("lsn",)], ids=["as they came", "by position"])
def test_a_value_that_is_not_told_stays(bench: Bench, way: str, order_by: tuple[str, ...]) -> None:
    table, event = keyed_table(bench, a_pipeline(*order_by), way), Stream()
    table.land([event("c", 1, 1, "long"), event("u", 1, 2, KEEPS), event("c", 2, 1, "other")])
    assert state_of(table) == {1: (2, "long"), 2: (1, "other")}
    table.land([event("u", 2, 2, KEEPS), event("u", 2, 3, KEEPS), event("u", 1, 3, "new")])
    assert state_of(table) == {1: (3, "new"), 2: (3, "other")}
    table.land([event("u", 1, 4, KEEPS), event("d", 2), event("c", 2, 9), event("u", 2, 10, KEEPS)])
    assert state_of(table) == {1: (4, "new"), 2: (10, None)}


@BOTH_LONG
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order_by", [(), ("lsn",)], ids=["as they came", "by position"])
def test_no_value_comes_from_before_a_deletion(
    bench: Bench, way: str, order_by: tuple[str, ...]
) -> None:
    table, event = keyed_table(bench, a_pipeline(*order_by), way), Stream()
    table.land([event("c", 1, 1, "a"), event("u", 2, 1, KEEPS), event("c", 3, 1, "c")])
    assert state_of(table) == {1: (1, "a"), 2: (1, KEEPS), 3: (1, "c")}
    table.land([event("d", 1), event("u", 1, 2, KEEPS), event("u", 2, 2, KEEPS)])
    assert state_of(table) == {1: (2, KEEPS), 2: (2, KEEPS), 3: (1, "c")}
    table.land([event("u", 3, 2, "d"), event("d", 3), event("u", 3, 3, KEEPS)])
    assert state_of(table) == {1: (2, KEEPS), 2: (2, KEEPS), 3: (3, KEEPS)}


@pytest.mark.takes_long("replaceUsing", "MERGE")
@pytest.mark.parametrize("way", WAYS)
def test_a_late_event_tells_no_value_that_a_newer_row_has(bench: Bench, way: str) -> None:
    table, event = keyed_table(bench, a_pipeline("lsn"), way), Stream()
    table.land([event("c", 1, 1, "a", lsn=10), event("u", 1, 2, "b", lsn=30)])
    table.land([event("u", 1, 9, "late", lsn=20), event("u", 1, 3, KEEPS, lsn=40)])
    assert state_of(table) == {1: (3, "b")}


@pytest.mark.takes_long("replaceUsing", "MERGE")
@pytest.mark.parametrize("way", WAYS)
def test_a_tombstone_deletes_where_message_keys_are_read(bench: Bench, way: str) -> None:
    table, event = keyed_table(bench, a_pipeline("lsn", key="json"), way), Stream()
    table.land([event("c", 1, 1, "a"), event("c", 2, 2, "b"), event("c", 3, 3, "c")])
    bare, wrapped = (b'{"id": 1}', None, 0, 9), (b'{"payload": {"id": 2}}', None, 0, 11)
    table.land([bare, event("d", 2), wrapped, event("u", 3, 4, KEEPS)])
    assert state_of(table) == {3: (4, "c")}
