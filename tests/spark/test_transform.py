"""A pipeline's own code in the batch: its rows land, and what it breaks leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.errors import MissingPackage, TransformFailed
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.write.landing import Landing, Site
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.files import FilesLanding
from tests.reading import rows_at
from tests.spark import own_code
from tests.spark.batch_table import batch_table
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOOD: list[RawRow] = [(None, b'{"n": %d}' % n, 0, n) for n in range(1, 6)]
BAD: RawRow = (b"k", b"bad", 0, 7)


def a_pipeline(**made: Any) -> Pipeline:
    target = {"table": "bronze.made", "columns": "m BIGINT, twice BIGINT"}
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": "n BIGINT",
            "target": {**target, "explode": made.pop("explode", False)},
            **made,
        }
    )


def of(function: str, **made: Any) -> Pipeline:
    return a_pipeline(transform=f"tests.spark.own_code:{function}", **made)


@dataclass
class Own:
    """Pipelines with own code, whose rows land in one way."""

    bench: Bench
    make: Callable[[Site], Landing]

    @property
    def one_each(self) -> Counts | None:
        """The counts of ``GOOD`` where each record has its row: Spark leaves that to its files."""
        return None if self.make is DataFrameWriter else (RowCounts(5, 0),)

    def land(self, pipeline: Pipeline, rows: list[RawRow]) -> Counts | None:
        """Land a batch; the counts in its entry."""
        table = batch_table(self.bench, pipeline, self.make, "made")
        table.land(rows)
        assert table.by_spark() is (self.make is DataFrameWriter)
        if self.make is FilesLanding:
            folder = self.bench.folder / "made"
            named = {Path(unquote(each)).name for each in DeltaTable(str(folder)).file_uris()}
            assert {each.name for each in folder.glob("*.parquet")} == named, "nothing is left"
        return table.entry.rows

    def rows(self) -> list[tuple[int, int, int]]:
        found = rows_at(self.bench.folder / "made")
        return sorted((row["_kafka"]["offset"], row["m"], row["twice"]) for row in found)

    def refused(self, cases: Mapping[str, tuple[Pipeline, str]]) -> None:
        """Each is refused with the words that are expected, and nothing of any is in the table."""
        said = {}
        for name, (pipeline, _) in cases.items():
            table = batch_table(self.bench, pipeline, self.make, "made")
            with pytest.raises(TransformFailed) as failed:
                table.land(GOOD)
            said[name] = str(failed.value)
        assert not [name for name, (_, words) in cases.items() if words not in said[name]], said
        for name, (pipeline, _) in cases.items():
            assert said[name].startswith(f"RM506 p {pipeline.made_by} on t-0[0,6): "), said[name]
            assert "othing of this batch is written" in said[name]
        assert self.rows() == []


@pytest.fixture(params=[DataFrameWriter, FilesLanding], ids=["spark", "files"])
def own(bench: Bench, request: pytest.FixtureRequest) -> Own:
    return Own(bench, request.param)


def test_a_function_makes_the_rows_of_the_table_in_one_pass(own: Own) -> None:
    own_code.SEEN.clear()

    assert own.land(of("doubled"), GOOD) == own.one_each

    assert own.rows() == [(n, n, 2 * n) for n in range(1, 6)]
    first, second = own_code.SEEN
    assert first == second
    assert (second.pipeline, second.sequence) == ("p", 1)
    [only] = second.ranges
    assert second.range_of("t", 0) == only
    assert second.range_of("t", 1) is None


@pytest.mark.thorough
def test_what_another_table_adds_is_counted_and_checked(own: Own) -> None:
    assert own.land(of("joined"), GOOD) == (RowCounts(5, 0),)
    assert own.rows() == [(n, n, 2 * n) for n in range(1, 6)]


def test_expressions_make_the_rows_of_the_table_in_one_pass(own: Own) -> None:
    pipeline = a_pipeline(select="abs(n) AS m, if(n > 1, n * 2, 2) AS twice")

    assert own.land(pipeline, GOOD) == own.one_each

    assert own.rows() == [(n, n, 2 * n) for n in range(1, 6)]


@pytest.mark.takes_long("none-offsets1", "limited-None")
@pytest.mark.parametrize(
    ("function", "offsets"),
    [
        ("even", [2, 4]),
        ("none", []),
        ("limited", None),
    ],
)
def test_a_bad_record_is_never_lost_whatever_the_function_leaves_out(
    own: Own, function: str, offsets: list[int] | None
) -> None:
    assert own.land(of(function), [*GOOD, BAD]) == (RowCounts(5, 1),)

    bad = rows_at(own.bench.folder / "made_quarantine")
    assert [each["offset"] for each in bad] == [7]
    found = [offset for offset, *_ in own.rows()]
    assert found == offsets if offsets is not None else len(found) == 1


def test_a_record_that_the_function_leaves_out_took_effect(own: Own) -> None:
    assert own.land(of("even"), GOOD) == (RowCounts(5, 0),)
    assert own.rows() == [(2, 2, 4), (4, 4, 8)]
    assert not (own.bench.folder / "made_quarantine").exists()


EXPLODED = [(n, n, k) for n in range(1, 6) for k in range(1, n)]


def test_a_record_may_have_any_number_of_rows_and_the_entry_counts_records(own: Own) -> None:
    assert own.land(of("repeated", explode=True), [*GOOD, BAD]) == (RowCounts(5, 1),)
    assert own.rows() == EXPLODED


@pytest.mark.thorough
def test_a_record_may_have_rows_by_way_of_other_tables(own: Own) -> None:
    assert own.land(of("joined_twice", explode=True), GOOD) == (RowCounts(5, 0),)
    assert own.rows() == [(n, n, k) for n in range(1, 6) for k in range(2)]


@pytest.mark.thorough
def test_an_expression_may_make_several_rows_of_one_record(own: Own) -> None:
    text = "n AS m, explode(if(n > 1, sequence(1, n - 1), array())) AS twice"
    assert own.land(a_pipeline(select=text, explode=True), [*GOOD, BAD]) == (RowCounts(5, 1),)
    assert own.rows() == EXPLODED


@pytest.mark.thorough
def test_columns_may_come_out_of_structs(own: Own) -> None:
    text = "inline(array(struct(n AS m, n * 2 AS twice)))"
    assert own.land(a_pipeline(select=text, explode=True), GOOD) == (RowCounts(5, 0),)
    assert own.rows() == [(n, n, 2 * n) for n in range(1, 6)]


@pytest.mark.thorough
def test_records_are_counted_also_where_each_has_one_row(own: Own) -> None:
    """Its rows could not tell their number to whoever counts them later."""
    assert own.land(of("doubled", explode=True), GOOD) == (RowCounts(5, 0),)


@pytest.mark.thorough
def test_rows_of_other_records_are_refused_where_a_record_may_have_several(own: Own) -> None:
    over = "n AS m, sum(n) OVER () AS twice"
    own.refused(
        {
            "elsewhere": (of("repeated_elsewhere", explode=True), "not that of a record"),
            "over": (a_pipeline(select=over, explode=True), "looks at other rows"),
        },
    )


BROKEN = {
    "exploded": "a record has several rows",
    "joined_twice": "a record has several rows",
    "elsewhere": "_kafka is not that of a record of this batch",
    "counting": "runs an action",
    "looking": "runs an action",
    "broken": "ValueError: no rule for this day",
    "misspelt": "UNRESOLVED_COLUMN",
    "nothing": "found NoneType",
    "with_text": "expected twice bigint; found twice string",
    "without_kafka": "found _kafka not there",
    "failing_in_python": "found IndexError: list index out of range",
    "dividing": "DIVIDE_BY_ZERO",
}
OF_OTHER_ROWS = {
    "n AS m, sum(n) OVER () AS twice": "looks at other rows",
    "n AS m, explode(array(n, n)) AS twice": "looks at other rows",
    "n AS m, (SELECT max(id) FROM range(3)) AS twice": "looks at other rows",
    "count(n) AS m, sum(n) AS twice": "MISSING_GROUP_BY",
    "n AS m": "found twice not there",
    "n AS m, n +": "PARSE_SYNTAX_ERROR",
}


@pytest.mark.thorough
def test_a_function_that_breaks_a_rule_is_named_and_nothing_is_written(own: Own) -> None:
    own.refused({name: (of(name), words) for name, words in BROKEN.items()})


def test_expressions_that_break_a_rule_are_refused_and_nothing_is_written(own: Own) -> None:
    cases = OF_OTHER_ROWS.items()
    own.refused({text: (a_pipeline(select=text), words) for text, words in cases})


def test_a_function_that_is_not_there_is_named(own: Own) -> None:
    with pytest.raises(MissingPackage, match=r"own_code:gone: .*cannot be imported") as failed:
        own.land(of("gone"), GOOD)
    assert "PYTHONPATH" in failed.value.remedy


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["unioned", "none", "failing_in_python"])
def test_what_a_task_wrote_for_nothing_is_removed(bench: Bench, function: str) -> None:
    own = Own(bench, FilesLanding)
    with suppress(TransformFailed):
        assert own.land(of(function, explode=function == "unioned"), [*GOOD, BAD]) == (
            RowCounts(5, 1),
        )
    named = {each.name for each in bench.folder.rglob("part-*.parquet")}
    tables = [DeltaTable(str(bench.folder / each)) for each in ("made", "made_quarantine")]
    held = {uri.rpartition("/")[2] for each in tables for uri in each.file_uris()}
    assert named == held
    if function == "unioned":
        assert len(own.rows()) == 10


@pytest.mark.thorough
def test_the_metadata_of_records_stays(bench: Bench) -> None:
    source = {"topics": ("t",), "format": "json", "metadata": ("key",)}
    own = Own(bench, FilesLanding)
    keyed: list[RawRow] = [(b"k%d" % n, each[1], *each[2:]) for n, each in enumerate(GOOD)]
    assert own.land(of("even", source=source), [*keyed, BAD]) == (RowCounts(5, 1),)
    found = rows_at(str(bench.folder / "made"))
    assert sorted((row["m"], row["_kafka"]["key"]) for row in found) == [(2, b"k1"), (4, b"k3")]
    [bad] = rows_at(str(bench.folder / "made_quarantine"))
    assert (bad["key"], bad["value"]) == (b"k", b"bad")
