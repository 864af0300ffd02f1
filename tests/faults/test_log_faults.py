"""What befalls the files of a table: maintenance, damage, copies, clocks, a removed file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.run.outcome import NOT_OK
from rivermouth.verification import verify
from tests.faults.outcomes import check_proved, problems
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, order, retrying, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BIDS, ORDERS = "bronze.log_bids", "silver.log_orders"
RECORDS = 12


@pytest.fixture(scope="module")
def filled(
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> SparkLake:
    """An append ``a`` and an upsert ``u``, two batches each; tests work on copies of it."""
    folder, servers = tmp_path_factory.mktemp("filled"), rivermouth_broker.bootstrap_servers
    lake = SparkLake(folder, servers, rivermouth_spark)
    lake.topic("log-bids")
    lake.topic("log-orders")
    lake.configure(
        a=append_pipeline("log-bids", max_offsets_per_trigger=6),
        u=upsert_pipeline("log-orders", max_offsets_per_trigger=6),
    )
    lake.bids("log-bids", RECORDS)
    lake.produce("log-orders", [(b"%d" % n, order(n, "open", n), 0) for n in range(RECORDS)])
    lake.go("a", "u")
    return lake


@pytest.fixture
def lake(filled: SparkLake, tmp_path: Path) -> SparkLake:
    return copied(filled, tmp_path / "copy")


def copied(lake: SparkLake, folder: Path) -> SparkLake:
    shutil.copytree(lake.folder, folder)
    return SparkLake(folder, lake.servers, lake.spark)


def log_of(lake: SparkLake, table: str = BIDS) -> Path:
    return lake.path(table) / "_delta_log"


def commit(lake: SparkLake, version: int, table: str = BIDS) -> Path:
    return log_of(lake, table) / f"{version:020d}.json"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.rglob("*.json"))


@pytest.mark.thorough
def test_maintenance_by_others_has_no_effect_not_even_vacuum_at_once(lake: SparkLake) -> None:
    others = lake.spark.newSession()
    others.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # VACUUM lists a folder in so many tasks; the default is 10,000.
    others.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    for table in (BIDS, ORDERS):
        path = f"delta.`{lake.path(table)}`"
        others.sql(f"OPTIMIZE {path}")
        others.sql(f"VACUUM {path} RETAIN 0 HOURS")
        DeltaTable(str(lake.path(table))).create_checkpoint()
        assert len([*lake.path(table).glob("*.parquet")]) == 1, "the old files are gone"

    heard = lake.go("a", "u")

    assert [(each.applied, each.sequence) for each in heard.ends] == [(0, 3), (0, 3)]
    check_proved(lake, records=2 * RECORDS)


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def missing(file: Path) -> None:
    file.unlink()
    file.with_suffix(".crc").unlink(missing_ok=True)


@pytest.mark.takes_long("torn-2-RM410", "empty-0-RM410", "empty-3-RM410")
@pytest.mark.parametrize(
    ("damage", "version", "code"),
    [
        *((damage, version, "RM410") for damage in (torn, empty) for version in (0, 2, 3)),
        *((missing, version, "RM410") for version in (0, 2)),
        (missing, 3, "RM415"),
    ],
)
def test_a_commit_that_is_torn_empty_or_missing_halts_before_a_write(
    lake: SparkLake,
    damage: Callable[[Path], None],
    version: int,
    code: str,
) -> None:
    """Version 3 is the newest one."""
    damage(commit(lake, version))
    before = names(lake.warehouse)

    halted = lake.refused("a", audit=damage is not missing)

    assert (halted.code, halted.exit_code) == (code, 3)
    assert str(halted).isprintable()
    assert names(lake.warehouse) == before
    assert not verify(load(lake.file)).ok


@pytest.mark.takes_long("empty")
@pytest.mark.parametrize("damage", [torn, empty])
def test_a_torn_pointer_to_the_last_checkpoint_has_no_effect(
    lake: SparkLake, damage: Callable[[Path], None]
) -> None:
    DeltaTable(str(lake.path(BIDS))).create_checkpoint()
    damage(log_of(lake) / "_last_checkpoint")

    lake.go("a")

    check_proved(lake, records=2 * RECORDS)


def test_a_damaged_checkpoint_of_the_log_halts(lake: SparkLake) -> None:
    DeltaTable(str(lake.path(BIDS))).create_checkpoint()
    [checkpoint] = log_of(lake).glob("*.checkpoint.parquet")
    torn(checkpoint)

    assert lake.refused("a").code == "RM410"


def test_an_offsets_table_whose_newest_commit_has_no_bytes_is_brought_up_to_date(
    lake: SparkLake,
) -> None:
    """As after a power failure: what delta-rs wrote last has not reached the disk.

    That commit has the rows of one entry or of several: those of a moment are written together.
    """
    empty(max((lake.warehouse / "rivermouth" / "offsets" / "_delta_log").glob("*.json")))
    assert {"no row" in line for line in problems(lake)} == {True}

    lake.go("a", "u")

    check_proved(lake, records=2 * RECORDS)


def test_a_data_file_without_bytes_is_found_by_verify(lake: SparkLake) -> None:
    """As after a power failure, where Spark wrote the file."""
    empty(Path(DeltaTable(str(lake.path(ORDERS))).file_uris()[0]))
    [found] = problems(lake)
    assert "the table cannot be read" in found


def test_a_copied_lake_goes_on_by_itself_and_a_copied_table_under_another_name_halts(
    rivermouth_broker: Broker, rivermouth_spark: SparkSession, tmp_path: Path
) -> None:
    lake = SparkLake(tmp_path / "first", rivermouth_broker.bootstrap_servers, rivermouth_spark)
    lake.folder.mkdir()
    table = lake.filled("copied")
    other = copied(lake, tmp_path / "second")
    lake.bids("copied", 4)
    for each in (lake, other):
        assert each.go().ends[0].applied == 4
        check_proved(each, records=9)
    shutil.copytree(table, lake.path("bronze.renamed"))
    lake.configure(p={**append_pipeline("copied"), "target": {"table": "bronze.renamed"}})

    halted = lake.refused()

    assert (halted.code, halted.exit_code) == ("RM408", 3)
    assert (halted.expected, halted.found) == ("'bronze.copied'", "'bronze.renamed'")


def test_clocks_that_jump_back_and_forth_between_commits_change_nothing(lake: SparkLake) -> None:
    for version, hours in enumerate((9000, 0, -9000, 2)):
        file = commit(lake, version, ORDERS)
        actions = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        for each in actions:
            if "commitInfo" in each:
                each["commitInfo"]["timestamp"] += hours * 3_600_000
        file.write_text("\n".join(map(json.dumps, actions)), "utf-8")
        os.utime(file, (1e9 - version, 1e9 - version))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # of a commit by Spark

    assert lake.go("u").ends[0].applied == 0

    check_proved(lake, records=2 * RECORDS)


@pytest.mark.thorough
def test_a_data_file_that_somebody_removed_is_found_by_verify_and_fails_an_upsert_plainly(
    lake: SparkLake,
) -> None:
    for table in (BIDS, ORDERS):
        Path(DeltaTable(str(lake.path(table))).file_uris()[0]).unlink()
    found = verify(load(lake.file))
    assert (found.ok, NOT_OK) == (False, 3)
    assert all("not found" in line for line in problems(lake)), problems(lake)
    assert len(problems(lake)) == 2

    lake.configure(a=append_pipeline("log-bids"), u=retrying(upsert_pipeline("log-orders"), 1))
    lake.produce("log-orders", [(b"1", order(1, "paid", 50), 0)])
    failed = lake.refused("u")
    assert (failed.code, failed.exit_code) == ("RM503", 1)
    assert "No such file" in failed.found
    lake.go("a")
