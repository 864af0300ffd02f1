"""What every warehouse promises: where tables lie, and how their ledgers are read and moved on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.config import Catalog, Column, Pipeline, Source, TableName, Target, Topics
from rivermouth.errors import RivermouthError
from rivermouth.protocol.commits import CommitPlan, Recorded, app_id, entry_of
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.catalog.warehouse import CatalogWarehouse
from rivermouth.warehouse.lake.warehouse import LakeWarehouse
from rivermouth.warehouse.ledger import read_ledger
from rivermouth.warehouse.ports import LedgerLog, Warehouse
from rivermouth.warehouse.spark_commits import writer_options
from rivermouth.warehouse.tables import check_target, create_target
from tests.builders import entry_after, plan_of, position, span
from tests.warehouse.conftest import CATALOG, FOLDER_WITH_SPARK, Schema


@dataclass(frozen=True)
class Site:
    """A warehouse, with the session through which it is written and a schema for tables."""

    warehouse: Warehouse
    session: SparkSession
    schema: str
    numbers: count[int]

    def pipeline(self, name: str = "orders") -> Pipeline:
        """An append pipeline with a table of its own, which is there."""
        pipeline = Pipeline(
            name=name,
            source=Source(topics=Topics(("t",)), format="json"),
            ddl=(Column("id", "BIGINT"),),
            target=Target(table=TableName(self.schema, f"{name}_{next(self.numbers)}")),
        )
        address = self.warehouse.address(pipeline.target.table)
        create_target(self.session, pipeline, address)
        check_target(self.session, pipeline, address)
        self.warehouse.prepare(self.session, pipeline)
        return pipeline

    def record(self, pipeline: Pipeline, entry: Entry) -> CommitPlan:
        """Commit an entry without rows."""
        plan = plan_of(entry, base=0)
        self.warehouse.writes(pipeline).record(plan)
        return plan


@pytest.fixture(scope="module", params=[FOLDER_WITH_SPARK, CATALOG])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    if request.param == "folder":
        session: SparkSession = request.getfixturevalue("rivermouth_spark")
        folder = tmp_path_factory.mktemp("warehouse") / "a lake"
        return Site(LakeWarehouse(session, Lake.in_folder(folder)), session, "s", count())
    schema: Schema = request.getfixturevalue("schema")
    names = Catalog("spark_catalog", schema.name, "state")
    return Site(CatalogWarehouse(schema.session, names), schema.session, schema.name, count())


def entries(log: LedgerLog, pipeline: Pipeline) -> list[Entry]:
    found = (entry_of(each, pipeline.name) for each in log.commits())
    return [each for each in found if each is not None]


def test_every_table_has_an_address_of_its_own_and_always_the_same(site: Site) -> None:
    table, other = TableName("a", "b"), TableName("a", "c")
    warehouse = site.warehouse
    assert warehouse.address(table) == warehouse.address(table)
    assert len({warehouse.address(table), warehouse.address(other), warehouse.offsets()}) == 3


def test_pipelines_of_one_run_may_hold_the_same_table(site: Site) -> None:
    table = site.pipeline().target.table
    for _ in range(2):
        with site.warehouse.hold(table), site.warehouse.hold(table):
            pass


def test_a_pipeline_that_has_not_run_has_no_entry(site: Site) -> None:
    pipeline = site.pipeline()
    found = read_ledger(site.warehouse.ledger(pipeline), pipeline)
    assert (found.newest, found.txn, found.projected) == (None, 0, 0)
    assert (found.history.whole, found.history.faults) == (True, ())
    assert found.table


def test_a_renamed_pipeline_has_the_ledger_of_its_first_name(site: Site) -> None:
    pipeline = site.pipeline()
    first = site.record(pipeline, entry_after(None, span(3, 3)))
    renamed = pipeline.model_copy(update={"name": "renamed", "ledger": "orders"})
    found = read_ledger(site.warehouse.ledger(renamed), renamed)
    assert (found.newest, found.txn, found.others) == (first.empty_entry(), 1, ())
    assert found.history.where.startswith("renamed "), "messages have the new name"


def test_a_commit_without_rows_is_made_once(site: Site) -> None:
    pipeline = site.pipeline()
    first = site.record(pipeline, entry_after(None, span(3, 3), span(0, 0, 1)))
    second = site.record(pipeline, entry_after(first.empty_entry(), span(3, 5)))
    site.record(pipeline, replace(second.empty_entry(), commit="of a zombie"))
    ledger = site.warehouse.ledger(pipeline)
    assert entries(ledger.log, pipeline) == [first.empty_entry(), second.empty_entry()]
    found = read_ledger(ledger, pipeline)
    assert (found.newest, found.txn) == (second.empty_entry(), 2)
    assert found.history.position == position(5, 0)
    assert found.table == ledger.log.table(app_id(pipeline.name)).table_id


def test_all_pipelines_share_the_offsets_table_and_not_a_log(site: Site) -> None:
    orders, bids = site.pipeline("orders"), site.pipeline("bids")
    plan = site.record(orders, entry_after(None, span(0, 0)))
    ledger, other = (site.warehouse.ledger(each) for each in (orders, bids))
    counted = site.warehouse.writes(orders).count(recorded(ledger.log, orders))
    ledger.offsets.project(counted)
    assert other.offsets.sequence("orders") == 1
    newest = other.offsets.newest("orders")
    assert newest is not None
    assert (newest.entry.commit, other.offsets.sequence("bids")) == (plan.commit, 0)
    assert entries(other.log, bids) == []
    assert {*(app for each in other.log.commits() for app in each.txns)} == set()


def recorded(log: LedgerLog, pipeline: Pipeline) -> Sequence[Recorded]:
    found = ((each, entry_of(each, pipeline.name)) for each in log.commits())
    return [Recorded(each.version, each.timestamp_ms, it) for each, it in found if it is not None]


def test_an_entry_keeps_the_counts_that_it_carries(site: Site) -> None:
    pipeline = site.pipeline()
    told = Recorded(1, 0, entry_after(None, span(0, 5)))
    assert told.entry.rows == (RowCounts(5, 0),)
    assert site.warehouse.writes(pipeline).count([told]) == [told]
    assert site.warehouse.writes(pipeline).count([]) == []


def test_an_error_of_others_becomes_one_of_ours_and_names_the_pipeline(site: Site) -> None:
    translate = site.warehouse.writes(site.pipeline("bids")).translate
    for fault in (PySparkException("[INTERNAL_ERROR] no"), OSError("gone"), RuntimeError("what")):
        told = translate(fault)
        assert isinstance(told, RivermouthError)
        assert (told.where, bool(told.found)) == ("bids", True)


def test_side_tables_may_be_prepared_again_and_again(site: Site) -> None:
    pipeline = site.pipeline()
    for _ in range(2):
        site.warehouse.prepare(site.session, pipeline)
    assert entries(site.warehouse.ledger(pipeline).log, pipeline) == []


def test_where_every_machine_sees_files_is_told_or_nothing(site: Site) -> None:
    folder = site.warehouse.scratch()
    assert folder is None or folder.parts[-3:] == ("spark_catalog", site.schema, "state")


def test_rows_are_counted_where_an_entry_does_not_tell(site: Site) -> None:
    pipeline = site.pipeline()
    address = site.warehouse.address(pipeline.target.table)
    rows = site.session.sql(
        "SELECT id, named_struct('topic', 't', 'partition', 0, 'offset', id, 'timestamp',"
        " timestamp'2026-01-01') AS _kafka FROM range(8) WHERE id <> 3"
    )
    entry = replace(entry_after(None, span(0, 5), span(0, 4, 1)), rows=None)
    address.write(rows.write.mode("append").options(**writer_options(entry)))
    ledger = site.warehouse.ledger(pipeline)
    [counted] = site.warehouse.writes(pipeline).count(recorded(ledger.log, pipeline))
    assert counted.entry.rows == (RowCounts(4, 0), RowCounts(0, 0))


def test_rows_of_many_partitions_and_several_entries_are_counted_each_in_its_range(
    site: Site,
) -> None:
    pipeline = site.pipeline()
    address = site.warehouse.address(pipeline.target.table)
    first = replace(
        entry_after(None, *(span(0, 3, n, topic) for topic in "tu" for n in range(40))), rows=None
    )
    second = replace(entry_after(first, span(3, 9, 1, "t"), span(3, 1_000_000, 39, "u")), rows=None)
    for entry, offsets in ((first, "id % 3 <= partition % 3"), (second, "id BETWEEN 3 AND 6")):
        rows = site.session.sql(
            "SELECT id, named_struct('topic', topic, 'partition', partition, 'offset', id,"
            " 'timestamp', timestamp'2026-01-01') AS _kafka FROM"
            " (SELECT cast(id AS INT) AS partition FROM range(40)), range(9),"
            f" (SELECT explode(array('t', 'u')) AS topic) WHERE {offsets}"
            + (" AND id < 3" if entry is first else " AND partition IN (1, 39)")
        )
        address.write(rows.write.mode("append").options(**writer_options(entry)))
    ledger = site.warehouse.ledger(pipeline)
    counted = site.warehouse.writes(pipeline).count(recorded(ledger.log, pipeline))
    expected = tuple(RowCounts(each.partition % 3 + 1, 0) for each in first.ranges)
    assert [each.entry.rows for each in counted] == [expected, (RowCounts(4, 0), RowCounts(4, 0))]
