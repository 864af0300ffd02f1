"""What a replay refuses, and what it shows before it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rivermouth.cli.replaying import read_into, replayed
from rivermouth.config import Config, TableName, load
from rivermouth.errors import ConfigError, ReplayRefused
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.reapply import WholeEntries
from rivermouth.replay.command import check_mode
from rivermouth.replay.in_place import check_all_there, check_alone, check_counts, check_inserts
from rivermouth.replay.into_table import check_free
from rivermouth.replay.report import RangeRead, Replayed, ReplayPlan
from tests.builders import place, span

pytestmark = pytest.mark.unit

TEXT = """
version: 1
kafka: {bootstrap.servers: "localhost:9092"}
warehouse: ./lake
pipelines:
  bids:
    source: {topics: [bids], format: json}
    schema: id BIGINT
    target: {table: bronze.bids}
  orders:
    source: {topics: [orders], format: json}
    schema: id BIGINT, at BIGINT
    target: {table: silver.orders, mode: upsert, keys: [id], order_by: [at]}
  firsts:
    source: {topics: [firsts], format: json}
    schema: id BIGINT, at BIGINT
    target: {table: silver.firsts, mode: insert, keys: [id]}
  totals:
    source: {topics: [totals], format: json}
    schema: id BIGINT, at BIGINT
    target: {table: gold.totals, mode: aggregate, keys: [id], metrics: {n: count()}}
  sent:
    source: {topics: [sent], format: json}
    schema: id BIGINT
    target: {kafka: out}
"""
FOUND = WholeEntries(2, (span(0, 9),), ((2, span(0, 9)),), {place(): RowCounts(6, 2)}, False)
READ = RangeRead.of((span(0, 9), span(0, 2, 1)), (RowCounts(6, 2), RowCounts(1, 0)))
IN_PLACE = ReplayPlan("orders", "silver.orders", READ, 1_200, 1, 0, since=2)
INTO = ReplayPlan("bids", "repair.bids", READ, 7)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "lake.yml"
    file.write_text(TEXT, encoding="utf-8")
    return load(file)


@pytest.mark.parametrize(
    ("good", "bad", "fits"),
    [(6, 2, True), (5, 0, True), (0, 0, True), (7, 1, False), (5, 3, False)],
)
def test_records_are_good_or_bad_as_they_were_or_compaction_took_them(
    good: int, bad: int, fits: bool
) -> None:
    if fits:
        check_counts("p", FOUND, (RowCounts(good, bad),))
        return
    with pytest.raises(ReplayRefused, match="decode differently") as refused:
        check_counts("p", FOUND, (RowCounts(good, bad),))
    assert refused.value.expected == "at most 6 good and 2 bad"
    check_counts("p", replace(FOUND, counts=None), (RowCounts(good, bad),))


@pytest.mark.parametrize(("good", "bad"), [(5, 2), (6, 1), (0, 0)])
def test_where_the_first_record_decides_none_may_be_gone(good: int, bad: int) -> None:
    check_all_there("p", FOUND, (RowCounts(6, 2),))
    with pytest.raises(ReplayRefused, match=r"records of t-0\[0,9\) are gone") as refused:
        check_all_there("p", FOUND, (RowCounts(good, bad),))
    assert refused.value.expected == "6 good and 2 bad"
    assert f"{good} good and {bad} bad" in refused.value.found
    assert "--into" in refused.value.remedy
    with pytest.raises(ReplayRefused, match="nobody can tell whether all"):
        check_all_there("p", replace(FOUND, counts=None), (RowCounts(6, 2),))


def test_a_missing_row_may_be_of_an_earlier_record_where_order_by_decides(config: Config) -> None:
    orders, bids = config.pipelines["orders"], config.pipelines["bids"]
    with pytest.raises(ReplayRefused, match="3 rows are missing"):
        check_inserts("p", orders, FOUND, 3)
    check_inserts("p", orders, FOUND, 0)
    check_inserts("p", bids, FOUND, 3)
    check_inserts("p", orders, replace(FOUND, earliest=True), 3)


def test_the_table_is_that_of_one_pipeline_by_its_name_or_its_first_one() -> None:
    check_alone("p", {"new", "first"}, ["new", "first", "new"])
    with pytest.raises(ReplayRefused, match="other pipelines") as refused:
        check_alone("p", {"new", "first"}, ["new", "z", "b", "b"])
    assert refused.value.found == "b, z"


MODES = {
    "bids": (False, True),
    "orders": (True, True),
    "firsts": (True, True),
    "totals": (False, True),
    "sent": (False, False),
}
"""Whether records are taken twice: in place, and into another table."""


@pytest.mark.parametrize("name", [*MODES])
def test_only_some_modes_take_records_twice(config: Config, name: str) -> None:
    pipeline = config.pipelines[name]
    in_place, elsewhere = MODES[name]
    for into, taken in ((False, in_place), (True, elsewhere)):
        if taken:
            check_mode(pipeline, elsewhere=into)
            continue
        with pytest.raises(ReplayRefused, match=f"mode {pipeline.shape.name} cannot") as refused:
            check_mode(pipeline, elsewhere=into)
        assert pipeline.shape.summary in refused.value.found
        assert ("--into" in refused.value.remedy) is elsewhere


def test_rows_that_own_code_makes_are_not_made_twice(config: Config) -> None:
    made = config.pipelines["bids"].model_copy(update={"select": ("id",)})
    with pytest.raises(ReplayRefused, match="would not call the code"):
        check_mode(made, elsewhere=True)


@pytest.mark.parametrize(
    "table",
    ["bronze.bids", "silver.orders", "silver.orders_quarantine", "rivermouth.offsets"],
)
def test_a_table_that_a_pipeline_writes_takes_no_rows_of_a_replay(
    config: Config, table: str
) -> None:
    with pytest.raises(ReplayRefused, match="no pipeline writes"):
        check_free(config, TableName.parse(table))
    check_free(config, TableName.parse("repair.bids"))


def test_what_would_change_is_shown_in_a_few_lines() -> None:
    assert [*IN_PLACE.lines] == [
        "in place, all that was read since entry 2 is applied once more",
        "t-0[0,9): 8 records, 2 of them bad",
        "t-1[0,2): 1 record",
        "silver.orders: 1,200 to insert, 1 to update, 0 to delete",
    ]
    assert [*INTO.lines][-1] == "repair.bids: 7 to insert"
    there = ReplayPlan("bids", "repair.bids", READ, 0, there=True)
    assert [*there.lines][-1] == "repair.bids has these rows already"
    told = Replayed(IN_PLACE, written=True, sequence=7).as_dict()
    assert (told["records"], told["sequence"], told["since_entry"]) == (9, 7, 2)
    assert told["ranges"][0]["bad"] == 2


@pytest.mark.parametrize(
    ("found", "dry_run", "said"),
    [
        (Replayed(IN_PLACE, True, 7), False, "1,201 rows changed in silver.orders, ledger entry 7"),
        (Replayed(INTO, True), False, "7 rows changed in repair.bids"),
        (Replayed(INTO, False), True, "dry run, nothing was written"),
        (Replayed(INTO, False), False, "nothing was written"),
        (Replayed(ReplayPlan("p", "s.t", READ, 0), False), True, "nothing to do in s.t"),
    ],
)
def test_the_verdict_says_what_was_written(found: Replayed, dry_run: bool, said: str) -> None:
    assert said in replayed(found, dry_run=dry_run)


def test_the_other_table_is_named_as_tables_are() -> None:
    assert read_into("") is None
    assert read_into("repair.bids") == TableName("repair", "bids")
    with pytest.raises(ConfigError, match="--into x"):
        read_into("x")
