"""Maintenance of tables that real runs made: what goes, and all that has to stay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.maintain import Maintenance, MaintenanceReport
from rivermouth.run.report import exit_code
from rivermouth.spark.session import Spark
from rivermouth.verification import verify
from rivermouth.warehouse.delta.log import DeltaLog
from tests.faults.outcomes import went_well
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TWO_DAYS_S = 2 * 86400


def two_days_on() -> float:
    """A clock by which what a test has just written is older than a day."""
    return time.time() + TWO_DAYS_S


def _no_spark() -> NoReturn:
    raise AssertionError("Spark was asked for")


NO_SPARK = Spark(_no_spark)
"""Tables in folders are maintained without it."""


def maintained(
    lake: Lake,
    *names: str,
    clock: Callable[[], float] = two_days_on,
    spark: SparkSession | Spark = NO_SPARK,
) -> list[MaintenanceReport]:
    maintenance = Maintenance(load(lake.file), spark, lake.scratch, clock=clock)
    return maintenance.pipelines(names)


def counts(report: MaintenanceReport) -> dict[str, tuple[int, int, int]]:
    """Compacted files, removed files and orphan rows by table."""
    assert report.error is None, str(report.error)
    return {each.table: each.counts for each in report.tables}


def clean(lake: Lake, names: Sequence[str]) -> None:
    """Every record in Kafka has its effect in the tables, once."""
    proof = verify(load(lake.file), list(names))
    assert proof.ok, proof.as_dict()


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Lake:
    """An append and an upsert, several small commits each, bad records among them."""
    lake = Lake(tmp_path_factory.mktemp("made"), rivermouth_broker.bootstrap_servers)
    lake.topic("kept-a", 2)
    lake.topic("kept-u")
    a = append_pipeline("kept-a", max_offsets_per_trigger=20)
    u = upsert_pipeline("kept-u", max_offsets_per_trigger=20)
    a["target"]["table"], u["target"]["table"] = "bronze.a", "silver.u"
    lake.configure(a=a, u=u)
    more(lake)
    went_well(lake.run(rivermouth_spark, "a", "u"))
    return lake


@pytest.fixture
def two(made: Lake, tmp_path: Path) -> Lake:
    """A copy of it, of the test's own; the topics are shared."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return Lake(tmp_path, made.servers)


def more(lake: Lake) -> None:
    bad = {7: b"{oops", 33: b""}
    lake.produce("kept-a", [(None, bad.get(n, bid(n)), n % 2) for n in range(60)])
    orders = [(b"%d" % (n % 9), bad.get(n, order(n % 9, "open", n)), 0) for n in range(40)]
    lake.produce("kept-u", [*orders, (b"3", None, 0)])


def left_in_quarantine(
    lake: Lake, spark: SparkSession, table: str, commit: str, sequence: int
) -> None:
    """Bad records once more, as a driver leaves them that dies before its commit."""
    path = str(lake.path(table))
    rows = spark.read.format("delta").load(path).where("commit <> 'dead'").limit(1)
    dead = rows.withColumn("commit", F.lit(commit)).withColumn(
        "sequence", F.lit(sequence).cast("bigint")
    )
    dead.write.format("delta").mode("append").save(path)


@pytest.mark.thorough
def test_files_are_compacted_and_rows_ledger_and_proof_stay_as_they_were(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    tables = ("bronze.a", "silver.u", "bronze.a_quarantine", "silver.u_quarantine")
    names = (*tables, "rivermouth.offsets")
    before = {each: sorted(map(repr, two.rows(each))) for each in names}
    delta = DeltaTable(two.path("bronze.a"))
    files = len(delta.file_uris())
    assert files > 1

    first, second = maintained(two, "a", "u")

    assert counts(first)["bronze.a"] == (files, 0, 0)
    assert len(DeltaTable(two.path("bronze.a")).file_uris()) == 1
    assert counts(first)["rivermouth.offsets"][0] > 1
    assert counts(second)["rivermouth.offsets"] == (0, 0, 0), "once is enough"
    assert {each: sorted(map(repr, two.rows(each))) for each in names} == before
    commits = list(DeltaLog.of_folder(two.path("bronze.a")).commits_after(delta.version()))
    assert {each.operation for each in commits} == {"OPTIMIZE"}
    assert all(each.txns == {} and each.user_metadata is None for each in commits)
    clean(two, ("a", "u"))
    more(two)
    again = went_well(two.run(rivermouth_spark, "a", "u"))
    assert all(each.applied > 0 for each in again.ends)
    clean(two, ("a", "u"))


@pytest.mark.thorough
def test_orphans_go_and_every_row_that_counts_or_may_come_to_count_stays(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    table = "bronze.a_quarantine"
    standing = sorted(map(repr, two.rows(table)))
    newest = max(each["sequence"] for each in two.rows("rivermouth.offsets"))
    left_in_quarantine(two, rivermouth_spark, table, "dead", sequence=2)
    left_in_quarantine(two, rivermouth_spark, table, "unborn", sequence=newest + 1)

    [young] = maintained(two, "a", clock=time.time)
    assert counts(young)[table][2] == 0, "it may be of a driver that lives"
    [old] = maintained(two, "a")

    assert counts(old)[table][2] == 1
    left = [each for each in two.rows(table) if each["commit"] != "unborn"]
    assert sorted(map(repr, left)) == standing
    assert len(two.rows(table)) == len(standing) + 1, "the next commit may bear that number"
    clean(two, ("a",))


@pytest.mark.thorough
def test_rows_of_entries_that_log_cleanup_took_are_found_in_the_offsets_table(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    table = "silver.u_quarantine"
    standing = sorted(map(repr, two.rows(table)))
    left_in_quarantine(two, rivermouth_spark, table, "dead", sequence=2)
    forget_all_but_the_newest(two.path("silver.u"))

    [report] = maintained(two, "u")

    assert counts(report)[table][2] == 1
    assert sorted(map(repr, two.rows(table))) == standing


def forget_all_but_the_newest(table: Path) -> None:
    """What log clean-up does after thirty days: a checkpoint stands for the older commits."""
    delta = DeltaTable(str(table))
    delta.create_checkpoint()
    for version in range(delta.version()):
        (table / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.thorough
def test_a_dry_run_says_what_would_go_and_lets_it_stand(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    table = "bronze.a_quarantine"
    left_in_quarantine(two, rivermouth_spark, table, "dead", sequence=2)
    stray = stray_file(two.path("bronze.a"), hours=200)
    versions = {each: DeltaTable(two.path(each)).version() for each in ("bronze.a", table)}
    config = load(two.file)

    maintenance = Maintenance(config, NO_SPARK, two.scratch, dry_run=True, clock=two_days_on)
    [report] = maintenance.pipelines(["a"])

    assert counts(report)["bronze.a"] == (0, 1, 0)
    assert counts(report)[table][2] == 1
    assert stray.exists()
    for each, version in versions.items():
        assert DeltaTable(two.path(each)).version() == version


def stray_file(table: Path, hours: int) -> Path:
    """A file that no version names, last written so long ago."""
    stray = table / "part-00000-of-a-batch-that-failed.snappy.parquet"
    stray.write_bytes(b"PAR1")
    ago = time.time() - hours * 3600
    os.utime(stray, (ago, ago))
    return stray


@pytest.mark.thorough
@pytest.mark.parametrize(("hours", "goes"), [(169, True), (167, False)])
def test_a_file_goes_only_after_the_hours_to_retain(
    two: Lake, rivermouth_spark: SparkSession, hours: int, goes: bool
) -> None:
    stray = stray_file(two.path("bronze.a"), hours)
    [report] = maintained(two, "a", clock=time.time)
    assert stray.exists() is not goes
    assert counts(report)["bronze.a"][1] == int(goes)


@pytest.mark.thorough
def test_a_table_that_keeps_old_files_for_less_is_refused_and_its_own_setting_holds(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    """Delta passes over the hours in a VACUUM statement and goes by the property."""
    path = two.path("bronze.a")
    stray = stray_file(path, hours=49)
    setting = "'delta.deletedFileRetentionDuration' = 'interval 48 hours'"
    rivermouth_spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({setting})")

    [refused] = maintained(two, "a")

    assert refused.error is not None
    assert "interval 48 hours" in str(refused.error)
    assert exit_code([refused]) == 2
    assert stray.exists()
    allowed = Maintenance(load(two.file), NO_SPARK, two.scratch, retain_hours=48)
    [report] = allowed.pipelines(["a"])
    assert counts(report)["bronze.a"][1] == 1
    assert not stray.exists()


@pytest.mark.thorough
def test_one_pipeline_that_cannot_be_maintained_does_not_stop_the_other(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    with locked_by_another_process(two.warehouse / "rivermouth" / "locks" / "bronze.a.lock"):
        first, second = maintained(two, "a", "u")
    assert first.error is not None
    assert first.error.code == "RM413"
    assert "silver.u" in counts(second)
    assert exit_code([first, second]) == 5


@contextmanager
def locked_by_another_process(file: Path) -> Iterator[None]:
    act = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", act, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        yield
        other.communicate()


@pytest.mark.thorough
def test_a_table_is_left_as_it_is_for_all_that_write_it_where_others_undid_a_commit(
    made: Lake, tmp_path: Path, rivermouth_spark: SparkSession
) -> None:
    lake = Lake(tmp_path, made.servers)
    lake.topic("kept-b")
    lake.produce("kept-b", [(None, bid(n), 0) for n in range(5)])
    a, b = append_pipeline("kept-a"), append_pipeline("kept-b")
    a["target"]["table"] = b["target"]["table"] = "bronze.both"
    lake.configure(a=a, b=b)
    went_well(lake.run(rivermouth_spark, "a"))
    path = lake.path("bronze.both")
    before = DeltaTable(path).version()
    went_well(lake.run(rivermouth_spark, "b"))
    rivermouth_spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {before}")
    stray = stray_file(path, hours=200)

    reports = maintained(lake, "a", "b")

    errors = [each.error for each in reports if each.error]
    assert [(each.code, each.where) for each in errors] == [("RM411", "b bronze.both")] * 2
    assert exit_code(reports) == 3
    assert stray.exists()
    assert DeltaTable(path).version() == before + 3


@pytest.mark.thorough
def test_a_table_that_is_quiet_gets_no_commit_until_a_run_has_written_its_entry_again(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    """Its log clean-up comes with commits, and would take the newest entry at last."""
    path = two.path("bronze.a")
    stray = stray_file(path, hours=200)
    version = DeltaTable(path).version()

    def later() -> float:
        return time.time() + 11 * 86400

    [report] = maintained(two, "a", clock=later)

    assert counts(report)["bronze.a"] == (0, 0, 0)
    assert report.tables[0].quiet.startswith("no entry for 11 days")
    assert [each.table for each in report.tables if each.quiet] == ["bronze.a"]
    assert exit_code([report]) == 0
    assert stray.exists()
    assert DeltaTable(path).version() == version


@pytest.mark.thorough
def test_without_an_offsets_table_a_target_is_left_alone_and_none_is_made(
    two: Lake, rivermouth_spark: SparkSession
) -> None:
    shutil.rmtree(two.path("rivermouth.offsets"))
    [report] = maintained(two, "a")
    assert report.error is None
    assert "no offsets table" in report.tables[0].quiet
    assert not two.path("rivermouth.offsets").exists()
    went_well(two.run(rivermouth_spark, "a"))
    [again] = maintained(two, "a")
    assert counts(again)["bronze.a"][0] > 1


@pytest.mark.thorough
def test_tables_that_only_a_catalog_knows_are_maintained_by_their_names(
    made: Lake, tmp_path: Path, rivermouth_spark: SparkSession
) -> None:
    """The offsets table among them, which lies in the schema that the configuration says."""
    pipeline = append_pipeline("kept-a", max_offsets_per_trigger=20)
    pipeline["target"]["table"] = "named.a"
    lake = Lake(tmp_path, made.servers)
    lake.configure(p=pipeline)
    settings = json.loads(lake.file.read_text("utf-8"))
    settings["warehouse"] = {"catalog": "spark_catalog", "schema": "named"}
    lake.file.write_text(json.dumps(settings), "utf-8")
    rivermouth_spark.sql("CREATE SCHEMA named")
    went_well(lake.run(rivermouth_spark, "p"))
    dead = "SELECT * EXCEPT (commit, sequence), 'dead' AS commit, 2L AS sequence"
    rows = rivermouth_spark.sql(f"{dead} FROM named.a_quarantine LIMIT 1")
    rows.write.format("delta").mode("append").saveAsTable("named.a_quarantine")
    before = rivermouth_spark.table("named.a_quarantine").count()

    [report] = maintained(lake, "p", spark=rivermouth_spark)

    found = counts(report)
    assert set(found) == {"named.a", "named.a_quarantine", "named.offsets"}
    assert found["named.a_quarantine"][2] == 1
    assert found["named.a"][0] > 1
    assert found["named.offsets"][0] > 1
    assert rivermouth_spark.table("named.a_quarantine").count() == before - 1
    rivermouth_spark.sql("DROP SCHEMA named CASCADE")


def test_a_table_that_no_run_has_made_yet_needs_nothing(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.configure(p=append_pipeline("never-run"))
    [report] = maintained(lake, "p")
    assert counts(report) == {}
    assert not lake.path("bronze.never_run").exists()
