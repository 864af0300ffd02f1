"""The offsets table in a catalog: whoever writes beside whom, each row is there once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.errors import OffsetsUnreadable, ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.spark.tables import Address
from rivermouth.warehouse.catalog.offsets import CatalogOffsets
from rivermouth.warehouse.ports import Attempts
from tests.builders import PIPELINE, entry_after
from tests.builders import recorded_entries as entries

pytestmark = pytest.mark.unit

ADDRESS = Address(name=("main", "rivermouth", "offsets"))
THRICE = Attempts(lambda: iter((0.1, 0.2)), lambda _: None)
CONFLICTS = ("[DELTA_METADATA_CHANGED] by another", "[DELTA_CONCURRENT_TRANSACTION] by another")


class Table:
    """A Delta table as far as writes go: ``txn``, rows, and what may be in the way of a commit."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.txns: dict[str, int] = {}
        self.commits = 0
        self.properties: list[str] = []
        self.faults: list[Exception] = []

    def write(self, rows: list[dict[str, Any]], options: Mapping[str, str]) -> None:
        if self.faults:
            raise self.faults.pop()
        if "txnAppId" in options:
            app, version = options["txnAppId"], int(options["txnVersion"])
            if self.txns.get(app, 0) >= version:
                return
            self.txns[app] = version
        if "replaceWhere" in options:
            pipeline, first, last = re.findall(r"'\w+'|\d+", options["replaceWhere"])
            self.rows = [
                each
                for each in self.rows
                if f"'{each['pipeline']}'" != pipeline
                or not int(first) <= each["sequence"] <= int(last)
            ]
        self.rows += rows
        self.commits += 1

    def sequences(self) -> list[int]:
        """The sequence of every row of partition 0: each once, if all is well."""
        return sorted(each["sequence"] for each in self.rows if each["partition"] == 0)


class Session:
    """Spark, for one driver; a statement changes properties, the rest is a write."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: list[dict[str, Any]] = []
        self._mode = ""
        self._options: Mapping[str, str] = {}

    def sql(self, statement: str) -> None:
        if self._table.faults:
            raise self._table.faults.pop()
        self._table.properties.append(statement)

    def createDataFrame(self, rows: pa.Table) -> Session:
        self._rows = rows.to_pylist()
        return self

    def coalesce(self, files: int) -> Session:
        return self

    @property
    def write(self) -> Session:
        return self

    def mode(self, mode: str) -> Session:
        self._mode = mode
        return self

    def options(self, **options: str) -> Session:
        self._options = options
        return self

    def format(self, name: str) -> Session:
        return self

    def saveAsTable(self, name: str) -> None:
        assert (self._mode == "overwrite") == ("replaceWhere" in self._options)
        self._table.write(self._rows, self._options)


class Offsets(CatalogOffsets):
    """One driver's offsets table; ``meanwhile`` happens between its look and its write."""

    def __init__(self, table: Table, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(cast(SparkSession, Session(table)), ADDRESS, THRICE)
        self._held = table
        self._meanwhile = meanwhile
        self._there = True

    def sequence(self, pipeline: str) -> int:
        ours = (each["sequence"] for each in self._held.rows if each["pipeline"] == pipeline)
        stands = max(ours, default=0)
        self._meanwhile()
        return stands

    def rollback_noted(self, pipeline: str) -> int:
        return 0


def test_entries_are_written_once_and_in_one_commit() -> None:
    table = Table()
    Offsets(table).project(entries(3))
    Offsets(table).project(entries(3))
    Offsets(table).project(entries(4))
    Offsets(table).project(entries(2, "bids"))
    assert table.sequences() == [1, 1, 2, 2, 3, 4]
    assert table.commits == 3
    assert table.txns == {"rivermouth/orders/offsets": 4, "rivermouth/bids/offsets": 2}


@pytest.mark.parametrize("faster", [6, 7, 8])
@pytest.mark.parametrize("late", [6, 7])
def test_of_two_drivers_that_saw_the_same_each_row_is_there_once(faster: int, late: int) -> None:
    """The late one has looked, and falls asleep; another one projects up to ``faster``."""
    table = Table()
    Offsets(table).project(entries(5))
    woken = Offsets(table, lambda: Offsets(table).project(entries(faster)))
    woken.project(entries(late))
    assert table.sequences() == list(range(1, max(faster, late) + 1))


def test_an_entry_without_ranges_needs_no_commit() -> None:
    table = Table()
    Offsets(table).project([])
    Offsets(table).project([Recorded(1, 0, entry_after(None))])
    assert table.commits == 0


@pytest.mark.parametrize("text", CONFLICTS)
def test_what_others_are_in_the_way_of_is_tried_again_a_few_times(text: str) -> None:
    table = Table()
    table.faults = [PySparkException(text)] * 2
    Offsets(table).project(entries(2))
    assert table.sequences() == [1, 2]
    table.faults = [PySparkException(text)] * 3
    with pytest.raises(ProjectionFailed, match="the offsets table could not be written"):
        Offsets(table).project(entries(3))
    assert table.sequences() == [1, 2]


@pytest.mark.parametrize(
    "fault", [PySparkException("[INTERNAL_ERROR] no"), Py4JNetworkError(), ConnectionResetError()]
)
def test_any_other_error_is_told_at_once_and_does_not_say_that_nothing_is_visible(
    fault: Exception,
) -> None:
    table = Table()
    table.faults = [fault]
    with pytest.raises(ProjectionFailed, match="the target table is as it should be") as caught:
        Offsets(table).project(entries(1))
    assert caught.value.found
    assert "Nothing of this batch" not in str(caught.value)
    assert table.faults == []


@pytest.mark.parametrize(
    "ask", [CatalogOffsets.sequence, CatalogOffsets.newest, CatalogOffsets.rollback_noted]
)
@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (PySparkException("[INTERNAL_ERROR] no\nmore"), "DROP it"),
        (Py4JNetworkError("Answer from Java side is empty"), "Run again"),
    ],
    ids=["Spark", "JVM"],
)
def test_an_offsets_table_that_cannot_be_read_is_no_failed_commit(
    fault: Exception, remedy: str, ask: Callable[[CatalogOffsets, str], object]
) -> None:
    table = Table()
    table.faults = [fault]
    offsets = CatalogOffsets(cast(SparkSession, Session(table)), ADDRESS)
    with pytest.raises(OffsetsUnreadable, match="cannot be read") as caught:
        ask(offsets, PIPELINE)
    assert (caught.value.where, caught.value.exit_code) == (str(ADDRESS), 1)
    assert caught.value.found
    assert remedy in caught.value.remedy


def test_a_rollback_is_noted_even_if_another_pipeline_notes_one_too() -> None:
    table = Table()
    table.faults = [PySparkException(CONFLICTS[0])]
    Offsets(table).note_rollback(PIPELINE, 7)
    assert [each.partition("SET ")[2] for each in table.properties] == [
        "TBLPROPERTIES ('rivermouth.halted.orders' = '7')"
    ]
