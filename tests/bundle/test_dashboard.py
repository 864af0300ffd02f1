"""The dashboard and the alerts, over tables that a real run made of records that we know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermouth.config import load
from rivermouth.local.broker import Broker
from tests.bundle.asking import Row, Widget, alert, ask, register, widgets
from tests.faults.outcomes import went_well
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

FULL = 20
"""``max_offsets_per_trigger`` of both pipelines."""
GOOD_BIDS, GOOD_ORDERS = 50, 9
BAD_BIDS = (b"{oops", b"", b"not json", b"[]")
BAD_ORDERS = (b"[1]", b'{"status": "open"}')
BIDS, ORDERS = GOOD_BIDS + len(BAD_BIDS), GOOD_ORDERS + len(BAD_ORDERS)
BAD = {
    ("bids", "RM603"): 3,
    ("bids", "RM602"): 1,
    ("orders", "RM603"): 1,
    ("orders", "RM605"): 1,
}


@dataclass(frozen=True)
class Shown:
    """A session in which the tables lie in the schema ``real``."""

    spark: SparkSession

    def copy(self, changed: str) -> str:
        """The schema ``copy``, whose offsets table this statement makes of ``real.offsets``."""
        self.spark.sql("CREATE SCHEMA IF NOT EXISTS copy")
        self.spark.sql(f"CREATE OR REPLACE TABLE copy.offsets USING delta AS {changed}")
        return "copy"


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Iterator[Shown]:
    """What real runs left, and the rows of a driver that died before its commit."""
    lake = Lake(tmp_path_factory.mktemp("shown"), rivermouth_broker.bootstrap_servers)
    fill(lake)
    went_well(lake.run(rivermouth_spark, "bids", "orders"))
    left_by_a_dead_driver(rivermouth_spark, lake.path("lake.bids_quarantine"))
    session = rivermouth_spark.newSession()
    register(session, load(lake.file), "real")
    session.sql("USE real")
    yield Shown(session)
    for schema in ("real", "copy"):
        rivermouth_spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def fill(lake: Lake) -> None:
    """Two topics; a fifth partition of one stays empty."""
    limit = {"max_offsets_per_trigger": FULL}
    bids, orders = append_pipeline("shown_bids", **limit), upsert_pipeline("shown_orders", **limit)
    bids["target"]["table"], orders["target"]["table"] = "lake.bids", "lake.orders"
    lake.configure(bids=bids, orders=orders)
    lake.topic("shown_bids", 3)
    lake.topic("shown_orders", 1)
    values = [*(bid(number) for number in range(GOOD_BIDS)), *BAD_BIDS]
    lake.produce("shown_bids", [(None, value, n % 2) for n, value in enumerate(values)])
    good = [(b"%d" % n, order(n, "open", n), 0) for n in range(GOOD_ORDERS - 1)]
    bad = [(b"99", value, 0) for value in BAD_ORDERS]
    lake.produce("shown_orders", [*good, (b"1", None, 0), *bad])


def left_by_a_dead_driver(spark: SparkSession, quarantine: Path) -> None:
    """Its rows once more, under a commit that never came."""
    rows = spark.read.format("delta").load(str(quarantine))
    again = rows.withColumn("commit", F.lit("never came"))
    again.write.format("delta").mode("append").save(str(quarantine))


def of(shown: Shown, name: str) -> list[Row]:
    """What the widget of this name shows."""
    [widget] = [each for each in widgets() if each.name == name]
    return ask(shown.spark, widget.statement)


@pytest.mark.parametrize("widget", list(widgets()), ids=lambda each: each.name)
def test_a_widget_draws_the_very_columns_that_its_query_answers(
    shown: Shown, widget: Widget
) -> None:
    assert frozenset(shown.spark.sql(widget.statement).columns) == widget.encoded
    assert ask(shown.spark, widget.statement), "nothing to draw"


def test_the_counters_count_what_was_produced(shown: Shown) -> None:
    assert of(shown, "records_today") == [{"records": BIDS + ORDERS}]
    assert of(shown, "quarantined_today") == [{"quarantined": len(BAD_BIDS + BAD_ORDERS)}]
    assert of(shown, "behind") == [{"sum(lag)": 0}]
    [stalest] = of(shown, "stalest")
    assert 0 <= stalest["max(minutes_old)"] < 30


def test_freshness_names_each_pipeline_its_table_and_its_records(shown: Shown) -> None:
    found = {row["pipeline"]: (row["table_name"], row["records"]) for row in of(shown, "freshness")}
    assert found == {"bids": ("lake.bids", BIDS), "orders": ("lake.orders", ORDERS)}


def test_throughput_adds_up_to_the_records(shown: Shown) -> None:
    rows = of(shown, "throughput")
    found = Counter[str]()
    for row in rows:
        found[row["pipeline"]] += row["records"]
        assert (row["minute"].second, row["minute"].microsecond) == (0, 0)
    assert found == {"bids": BIDS, "orders": ORDERS}


def test_the_lag_falls_batch_by_batch_from_all_there_was_to_nothing(shown: Shown) -> None:
    lags = [row["lag"] for row in of(shown, "lag") if row["pipeline"] == "bids"]
    read = [before - after for before, after in pairwise(lags)]
    assert (lags[0], lags[-1]) == (BIDS, 0), "the first entry is written before anything is read"
    assert all(FULL - 3 < size <= FULL for size in read[:-1])
    assert len(read) == -(-BIDS // FULL)


def test_each_partition_stands_where_its_topic_ends(shown: Shown) -> None:
    rows = of(shown, "partitions")
    assert {row["lag"] for row in rows} == {0}
    found = {(row["topic"], row["partition"]): row["next_offset"] for row in rows}
    ends = {("shown_bids", 0): BIDS // 2, ("shown_bids", 1): BIDS // 2, ("shown_bids", 2): 0}
    assert found == {**ends, ("shown_orders", 0): ORDERS}
    [empty] = [row for row in rows if (row["topic"], row["partition"]) == ("shown_bids", 2)]
    assert empty["newest_batch"] is None, "an entry that read nothing of it is none of its batches"
    read = {row["place"]: row["offsets_read"] for row in of(shown, "skew")}
    assert read["shown_bids 0"] == BIDS // 2
    assert read["shown_bids 2"] == 0


@pytest.mark.parametrize("name", ["quarantine_by_code", "quarantine_by_reason"])
def test_quarantine_counts_bad_records_and_nothing_that_a_dead_driver_left(
    shown: Shown, name: str
) -> None:
    rows = of(shown, name)
    assert {(row["pipeline"], row["code"]): row["records"] for row in rows} == BAD


@pytest.mark.parametrize(
    ("age", "retired", "state", "pipelines"),
    [
        pytest.param("0 MINUTES", "", "OK", {"bids", "orders"}, id="new commits"),
        pytest.param("61 MINUTES", "", "TRIGGERED", ["orders", "bids"], id="the stalest first"),
        pytest.param("31 DAYS", "", "OK", ["bids"], id="retired after a month"),
        pytest.param("61 MINUTES", "x,orders", "OK", ["bids"], id="retired by a variable"),
    ],
)
def test_freshness_fires_over_old_commits_of_pipelines_that_are_not_retired(
    shown: Shown, age: str, retired: str, state: str, pipelines: Collection[str]
) -> None:
    """``age`` is how much older the commits of orders are."""
    older = f"committed_at - IF(pipeline = 'orders', INTERVAL {age}, INTERVAL 0 MINUTES)"
    aged = f"SELECT * EXCEPT (committed_at), {older} AS committed_at FROM real.offsets"
    asked = alert("freshness", shown.copy(aged), stale_minutes=60, retired=retired)
    rows = ask(shown.spark, asked.statement)
    assert asked.state(rows) == state
    found = [row["pipeline"] for row in rows]
    assert (found if isinstance(pipelines, list) else {*found}) == pipelines


def test_freshness_fires_where_nothing_was_ever_committed(shown: Shown) -> None:
    nothing = shown.copy("SELECT * FROM real.offsets LIMIT 0")
    empty = alert("freshness", nothing, stale_minutes=60)
    assert empty.state(ask(shown.spark, empty.statement)) == "TRIGGERED"


def test_backlog_fires_over_the_lag_that_the_newest_commits_left(shown: Shown) -> None:
    caught_up = alert("backlog", "real", backlog_records=0)
    assert caught_up.state(ask(shown.spark, caught_up.statement)) == "OK"
    stopped = "SELECT * FROM real.offsets WHERE pipeline = 'orders' OR sequence < 4"
    schema = shown.copy(stopped)
    [read] = ask(shown.spark, f"SELECT sum(records) AS n FROM ({stopped}) WHERE pipeline = 'bids'")
    left = BIDS - read["n"]
    fires = alert("backlog", schema, backlog_records=left - 1)
    rows = ask(shown.spark, fires.statement)
    found = [(row["pipeline"], row["offsets_behind"]) for row in rows]
    assert found == [("bids", left), ("orders", 0)], "the farthest behind comes first"
    assert fires.state(rows) == "TRIGGERED"
    patient = alert("backlog", schema, backlog_records=left)
    assert patient.state(rows) == "OK"
    retired = alert("backlog", schema, backlog_records=0, retired="bids")
    assert retired.state(ask(shown.spark, retired.statement)) == "OK"
