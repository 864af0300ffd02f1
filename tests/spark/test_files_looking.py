"""Rows as files: Kafka is looked at beside the reading, and the commit waits for what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.errors import TopicRecreated
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import CommitPlan, entry_of
from rivermouth.protocol.offsets import Position
from rivermouth.write.files.way import Way
from rivermouth.write.landing import Look, RawBatch
from rivermouth.write.landings.files import Files
from tests.spark.conftest import Bench
from tests.spark.files_table import BAD, GOOD, Table, made

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass
class Kafka:
    """Says of each look whether what was read may count; and then what its ends are."""

    table: Table
    counts: list[bool] = field(default_factory=list)
    fault: Exception | None = None
    files: list[int] = field(default_factory=list)
    """How many data files were there at the end of each look."""

    @contextmanager
    def looking(self) -> Iterator[Look]:
        def look(plan: CommitPlan) -> tuple[CommitPlan, bool]:
            self.files.append(len([*self.table.log.path.glob("*.parquet")]))
            if self.fault is not None:
                raise self.fault
            ends = Position({each: 100 + len(self.files) for each in plan.draft.position})
            draft = replace(plan.draft, ends=ends)
            return replace(plan, draft=draft), self.counts.pop(0)

        yield look

    def land(self) -> CommitPlan:
        """Land a batch with one bad record."""
        rows, bench = [*GOOD, BAD], self.table.bench
        self.table.sequence += 1
        plan = bench.plan(self.table.sequence, rows, Position())
        plan = replace(plan, base=self.table.version)
        raw = RawBatch(bench.raw(rows), decoder(self.table.pipeline), looking=self.looking)
        self.table.files.land(raw, plan)
        return plan

    def ends(self) -> set[int]:
        """The ends that the newest entry tells."""
        entry = entry_of([*self.table.log.commits()][-1], "p")
        assert entry is not None
        return {*entry.ends.offsets.values()}


def bad(table: Table) -> int:
    path = Path(f"{table.log.path}_quarantine")
    return len(DeltaTable(str(path)).to_pyarrow_table()) if path.exists() else 0


def test_the_entry_has_what_kafka_said(bench: Bench) -> None:
    table = made(bench)
    kafka = Kafka(table, [True])
    kafka.land()
    assert kafka.ends() == {101}
    assert kafka.files[0] > 0, "it may take as long as the reading"
    assert (table.numbers(), bad(table)) == ([0, 1, 2, 3], 1)


def test_what_may_not_count_is_read_again_and_only_that_is_committed(bench: Bench) -> None:
    table = made(bench)
    kafka = Kafka(table, [False, False, True])
    kafka.land()
    first, second, third = kafka.files
    assert first < second < third
    assert kafka.ends() == {103}
    assert (table.numbers(), bad(table)) == ([0, 1, 2, 3], 1)
    assert table.ways() == ["driver"]


def test_where_kafka_stands_against_it_nothing_is_committed_also_no_bad_record(
    bench: Bench,
) -> None:
    table = made(bench)
    kafka = Kafka(table, fault=TopicRecreated("topic t was created again"))
    with pytest.raises(TopicRecreated):
        kafka.land()
    assert (table.numbers(), bad(table), table.version) == ([], 0, 0)


def test_a_table_that_asks_for_spark_is_written_only_after_kafka_was_looked_at(
    bench: Bench,
) -> None:
    table = made(bench)
    table.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (n < 1000)")
    looked_at_first(Kafka(table, [True]))


def test_so_is_one_that_the_configuration_leaves_to_spark(bench: Bench) -> None:
    table = made(bench)
    table.files = Files(bench.site(table.pipeline, "numbers"), Way("target.commit says so"))
    looked_at_first(Kafka(table, [True]))


def looked_at_first(kafka: Kafka) -> None:
    """A batch lands through Spark, and nothing of it was written when Kafka was looked at."""
    kafka.land()
    assert kafka.files == [0]
    assert kafka.ends() == {101}
    assert kafka.table.by_spark()
    before = kafka.table.version
    kafka.fault = TopicRecreated("topic t was created again")
    with pytest.raises(TopicRecreated):
        kafka.land()
    assert kafka.table.version == before
