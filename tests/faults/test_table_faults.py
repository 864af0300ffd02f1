"""What others do to a table, on real parts: it halts before it writes, and there is a way on."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rivermouth.config import load
from rivermouth.run import committer
from rivermouth.run.run import Run
from rivermouth.storage.store import Store
from rivermouth.testing import Record
from rivermouth.verification import verify
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.warehouse.ports import Attempts
from tests.faults.spark_lake import SparkLake
from tests.lake import Heard, append_pipeline, bid, order, through_spark, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MODES = ("append", "upsert")


def filled(lake: SparkLake, topic: str, mode: str) -> str:
    """A pipeline ``p`` that has committed three batches; returns its table's name."""
    lake.topic(topic, 2)
    make = {"append": append_pipeline, "spark": through_spark}.get(mode, upsert_pipeline)
    config = lake.configure(p=make(topic, max_offsets_per_trigger=40))
    lake.produce(topic, records(mode, 0))
    lake.go()
    return str(config.pipelines["p"].target.table)


def records(mode: str, start: int) -> list[Record]:
    """A hundred records, one of them bad."""
    made: list[Record] = []
    for n in range(start, start + 100):
        value = order(n % 30, f"s{n}", n) if mode == "upsert" else bid(n)
        made.append((str(n % 30).encode(), b"bad" if n % 100 == 50 else value, n % 2))
    return made


def code(lake: SparkLake) -> str:
    halt = lake.refused()
    assert halt.exit_code == 3
    return halt.code


def resume(lake: SparkLake, accept: str) -> None:
    run = Run(load(lake.file), lake.spark, lake.scratch, continuous=False)
    run.resume("p", accept, Heard())


def check_proved(lake: SparkLake, *, entries: int = 0) -> None:
    """``verify``, which shares no code with the writer, finds everything there once."""
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.problems, proof.ok) == ((), True)
    assert proof.records + proof.lost >= entries


@pytest.mark.short(("mode",), {("append",)})
@pytest.mark.parametrize("mode", MODES)
def test_a_restored_table_goes_on_from_the_restored_state_once_that_is_accepted(
    lake: SparkLake, mode: str
) -> None:
    table = filled(lake, f"accepted-{mode}", mode)
    DeltaTable(str(lake.path(table))).restore(2)
    lake.produce(f"accepted-{mode}", records(mode, 100))
    assert code(lake) == "RM411"

    resume(lake, "restore")
    lake.go()

    check_proved(lake, entries=200)


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "created_again"), [("append", False), ("upsert", True)])
def test_an_emptied_table_starts_over_once_that_is_accepted(
    lake: SparkLake, mode: str, created_again: bool
) -> None:
    """With whatever topic there is then."""
    topic = f"emptied-{mode}"
    table = filled(lake, topic, mode)
    lake.spark.sql(f"DELETE FROM delta.`{lake.path(table)}`")
    if created_again:
        lake.delete_topic(topic)
        lake.topic(topic, 2)
        lake.produce(topic, records(mode, 100))
    assert code(lake) == "RM411"

    resume(lake, "reset")
    lake.go()

    check_proved(lake, entries=100)


def test_a_table_dropped_and_made_anew_starts_over_once_that_is_accepted(lake: SparkLake) -> None:
    table = filled(lake, "dropped", "append")
    shutil.rmtree(lake.path(table))
    assert code(lake) == "RM415"

    resume(lake, "reset")
    lake.go()

    check_proved(lake, entries=100)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Calls what a test appends, once, at the point where a batch is about to be written."""
    pending: list[object] = []

    def reach(point: str) -> None:
        if point == "P3" and pending and callable(act := pending.pop()):
            act()

    monkeypatch.setattr(committer, "reach", reach)
    yield pending
    assert not pending, "the moment never came"


@pytest.mark.short(("way",), {("append",)})
@pytest.mark.parametrize(
    ("way", "found"),
    [
        pytest.param("append", "RM411", id="before the commit of files"),
        pytest.param("spark", "RM410", id="after a commit by Spark, which one more RESTORE heals"),
    ],
)
def test_a_restore_in_the_middle_of_a_batch_is_found_and_can_be_accepted(
    lake: SparkLake, meanwhile: list[object], way: str, found: str
) -> None:
    topic = f"amid-{way}"
    path = str(lake.path(filled(lake, topic, way)))
    lake.produce(topic, records("append", 100))
    before = DeltaTable(path).version()
    meanwhile.append(lambda: DeltaTable(path).restore(2))
    assert code(lake) == found
    assert code(lake) == found
    if found == "RM410":
        DeltaTable(path).restore(before + 1)
        assert code(lake) == "RM411"
    else:
        assert DeltaTable(path).version() == before + 1

    resume(lake, "restore")
    lake.go()

    check_proved(lake, entries=200)


@pytest.mark.thorough
def test_a_merge_that_others_conflict_with_is_tried_again_with_the_same_range(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(lake, "conflicts", "upsert")
    lake.produce("conflicts", records("upsert", 100))
    retried = threading.Event()

    def rival() -> None:
        while not retried.wait(0.05):
            with suppress(DeltaError):  # the rival may be the one that loses
                DeltaTable(str(lake.path(table))).update(updates={"status": "status"})

    def pause(seconds: float) -> None:
        retried.set()
        thread.join()

    thread = threading.Thread(target=rival)
    attempts = Attempts(lambda: repeat(0.0, 4), pause)
    monkeypatch.setattr(Attempts, "by", lambda *_: attempts)
    thread.start()
    try:
        lake.go()
        assert retried.is_set(), "no conflict came about"
    finally:
        retried.set()
        thread.join()

    check_proved(lake, entries=200)


@pytest.mark.short(("known",), {(True,)})
@pytest.mark.parametrize("known", [True, False])
def test_a_ledger_that_clean_up_has_taken_comes_back_from_the_offsets_table(
    lake: SparkLake, known: bool
) -> None:
    topic = f"trimmed-{known}".lower()
    table = filled(lake, topic, "append")
    take_all_entries(lake.path(table))
    if not known:
        shutil.rmtree(lake.warehouse / "rivermouth" / "offsets")
        assert code(lake) == "RM412"
        return
    lake.produce(topic, records("append", 100))

    heard = lake.go()

    assert heard.opens[0].recovered
    check_proved(lake)
    assert len(lake.rows(table)) == 198
    offsets = Store.of_folder(lake.path("rivermouth.offsets"))
    assert LakeOffsets(offsets).sequence("p") == 8


def take_all_entries(path: Path) -> None:
    """Leave of the log what clean-up leaves: a checkpoint, and commits that came after it."""
    table = DeltaTable(str(path))
    table.optimize.compact()
    table.create_checkpoint()
    for version in range(table.version()):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
        (path / "_delta_log" / f"{version:020d}.crc").unlink(missing_ok=True)


RENAMED = "ALTER TABLE {t} RENAME COLUMN bidder TO buyer"
DROPPED = "ALTER TABLE {t} DROP COLUMN bidder"


@pytest.mark.short(("statement",), {(DROPPED,)})
@pytest.mark.parametrize("statement", [RENAMED, DROPPED])
def test_a_column_that_others_took_away_halts_the_start_and_is_named(
    lake: SparkLake, statement: str
) -> None:
    topic = f"altered-{statement.split()[3].lower()}"
    table = filled(lake, topic, "append")
    path = f"delta.`{lake.path(table)}`"
    mapping = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    lake.spark.sql(f"ALTER TABLE {path} {mapping}")
    lake.spark.sql(statement.format(t=path))
    halted = lake.refused()
    assert (halted.code, halted.exit_code, "bidder" in str(halted)) == ("RM414", 3, True)


@pytest.mark.thorough
def test_a_constraint_of_others_fails_the_batch_and_leaves_no_row(lake: SparkLake) -> None:
    table = filled(lake, "constrained", "append")
    path = f"delta.`{lake.path(table)}`"
    lake.spark.sql(f"ALTER TABLE {path} ADD CONSTRAINT small CHECK (auction < 1000)")
    lake.produce("constrained", [(None, bid(5000), 0)])
    failed = lake.refused()
    assert (failed.code, "small" in str(failed)) == ("RM503", True)
    lake.spark.sql(f"ALTER TABLE {path} DROP CONSTRAINT small")
    lake.go()
    check_proved(lake, entries=101)
