"""Rows as files: Kafka is asked while a batch is staged, and the commit waits for the answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from rivermouth.errors import CommitConflict, TopicRecreated
from rivermouth.errors.store import StoreRefused
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import CommitPlan, entry_of
from rivermouth.protocol.offsets import Position
from rivermouth.write.files.writing import Task, Written, carried_out
from rivermouth.write.landing import RawBatch, Staged
from rivermouth.write.landings import files as files_landing
from rivermouth.write.landings.files import FilesLanding
from tests.landing import take_steps
from tests.reading import table_at
from tests.spark.conftest import Bench, RawRow
from tests.spark.files_table import BAD, GOOD, Table, at, made

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BOTH = (*GOOD, BAD)


@dataclass
class Kafka:
    """Says of each attempt in which leader epoch the log is, and what its ends are."""

    table: Table
    answers: list[int] = field(default_factory=list)
    fault: Exception | None = None
    patience: float = 60.0
    files: list[int] = field(default_factory=list)
    """How many data files there were at the end of each answer."""
    staged: threading.Event = field(default_factory=threading.Event)

    def guard(self, plan: CommitPlan) -> CommitPlan:
        self.staged.wait(self.patience)
        self.files.append(files_of(self.table))
        if self.fault is not None:
            raise self.fault
        ends = Position({each: 100 + len(self.files) for each in plan.draft.position})
        epochs = dict.fromkeys(plan.draft.position, self.answers.pop(0))
        return replace(plan, draft=replace(plan.draft, ends=ends, epochs=epochs))

    def land(self, rows: Sequence[RawRow] = BOTH, sequence: int = 1) -> None:
        """Land a batch; by default with one bad record. The log was in epoch 0 before."""
        bench = self.table.bench
        plan = replace(bench.plan(sequence, rows, Position()), base=self.table.version)
        epochs = dict.fromkeys(plan.draft.position, 0)
        plan = replace(plan, draft=replace(plan.draft, epochs=epochs))
        batch = RawBatch(bench.raw(rows), decoder(self.table.pipeline))
        self.staged.clear()

        def stage(plan: CommitPlan, stack: ExitStack) -> Staged:
            found = self.table.files.stage(batch, plan, stack)
            self.staged.set()
            return found

        take_steps(stage, plan, self.guard)

    def ends(self) -> set[int]:
        """The ends that the newest entry tells."""
        entry = entry_of([*self.table.log.commits()][-1], "p")
        assert entry is not None
        return {*entry.ends.offsets.values()}


def files_of(table: Table) -> int:
    return len([*table.path.glob("*.parquet")])


def bad(table: Table) -> int:
    path = Path(f"{table.path}_quarantine")
    return len(table_at(path)) if path.exists() else 0


def test_the_entry_has_what_kafka_said(bench: Bench) -> None:
    table = made(bench)
    kafka = Kafka(table, [0])
    kafka.land()
    assert kafka.ends() == {101}
    assert kafka.files[0] > 0, "it may take as long as the reading"
    assert (table.numbers(), bad(table)) == ([0, 1, 2, 3], 1)


@pytest.mark.thorough
def test_what_may_not_count_is_read_again_and_only_that_is_committed(bench: Bench) -> None:
    table = made(bench)
    kafka = Kafka(table, [1])
    kafka.land()
    [before] = kafka.files
    assert files_of(table) > before
    assert kafka.ends() == {101}
    assert (table.numbers(), bad(table)) == ([0, 1, 2, 3], 1)
    assert table.ways() == ["driver"]


@pytest.mark.takes_long("another leader")
@pytest.mark.parametrize("same", [True, False], ids=["the same leader", "another leader"])
def test_files_that_waited_count_under_the_epochs_in_which_they_were_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    table = made(bench)
    kafka = Kafka(table, [0, 0 if same else 1])
    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (n) VALUES (9)"))
    with pytest.raises(CommitConflict):
        kafka.land(GOOD)
    waiting = files_of(table)
    kafka.land(GOOD)
    assert (files_of(table) == waiting) is same
    assert table.numbers() == [0, 1, 2, 3, 9]


@pytest.mark.thorough
def test_where_kafka_stands_against_it_nothing_is_committed_also_no_bad_record(
    bench: Bench,
) -> None:
    table = made(bench)
    kafka = Kafka(table, fault=TopicRecreated("topic t was created again"))
    with pytest.raises(TopicRecreated):
        kafka.land()
    assert (table.numbers(), bad(table), table.version) == ([], 0, 0)


@pytest.mark.thorough
def test_a_table_that_asks_for_spark_is_written_only_after_kafka_was_asked(
    bench: Bench,
) -> None:
    table = made(bench)
    table.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (n < 1000)")
    asked_first(Kafka(table, [0]))


@pytest.mark.thorough
def test_so_is_one_that_the_configuration_leaves_to_spark(bench: Bench) -> None:
    asked_first(Kafka(made(bench, commit="spark"), [0]))


def asked_first(kafka: Kafka) -> None:
    """A batch lands through Spark, and nothing of it was written when Kafka was asked."""
    kafka.land()
    assert kafka.files == [0]
    assert kafka.ends() == {101}
    assert kafka.table.by_spark()
    before = kafka.table.version
    kafka.fault = TopicRecreated("topic t was created again")
    with pytest.raises(TopicRecreated):
        kafka.land(sequence=2)
    assert kafka.table.version == before


def test_a_file_that_the_driver_does_not_find_is_in_no_commit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a folder that the machine of an executor does not share."""
    table = made(bench)
    site = replace(bench.site(table.pipeline, "numbers"), one_host=False)
    table.files = FilesLanding(site)

    def carried_out_elsewhere(rows: DataFrame, task: Task) -> Written:
        found = carried_out(rows, task)
        (table.path / found.good[0].name).unlink()
        return found

    monkeypatch.setattr(files_landing, "carried_out", carried_out_elsewhere)
    with pytest.raises(
        StoreRefused, match=r"RM211 .* tasks write where the driver does not see it"
    ):
        table.land()
    assert table.version == 0

    monkeypatch.undo()
    table.sequence = 0
    table.land()
    assert table.numbers() == [0, 1, 2, 3]
