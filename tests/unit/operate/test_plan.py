"""What a run would do, from ledger and table on the disk and the facts of a broker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.config import Config
from rivermouth.errors import KafkaUnreachable
from rivermouth.operate.plan import PipelinePlan, RunPlan, plan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Watermarks
from rivermouth.run.plans import plan_text
from rivermouth.warehouse.tables import create_by_commit
from tests.folders import lake_of
from tests.unit.operate.doubles import Answering, configured
from tests.unit.operate.test_status import ENTRY, STAMP, T0, T1, commit, facts

pytestmark = pytest.mark.unit

AWAY = KafkaUnreachable("no broker answers")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path, p="t")


def planned(config: Config, answer: KafkaFacts | None = None, **failing: Exception) -> PipelinePlan:
    broker = Answering(answer or facts(), failing=failing)
    [found] = plan(config, broker, lambda: STAMP.timestamp()).pipelines
    return found


def made(config: Config, entry: Entry = ENTRY) -> Path:
    """The table as a run makes it, with an entry that has read all there was."""
    pipeline = config.pipelines["p"]
    create_by_commit(pipeline, lake_of(config).store(pipeline.target.table))
    return commit(config, entry)


def test_a_new_pipeline_makes_its_table_and_records_where_its_partitions_start(
    config: Config,
) -> None:
    found = planned(config)
    assert (found.state, found.opening, found.error) == ("new", "discovery", None)
    [statement] = found.statements
    assert statement.startswith("CREATE TABLE IF NOT EXISTS delta.`")
    assert "`id` BIGINT" in statement
    assert found.ranges == (OffsetRange(T0, 0, 10), OffsetRange(T1, 0, 5))
    assert (found.offsets, found.batches) == (15, 1)


def test_one_that_goes_on_reads_what_is_new(config: Config) -> None:
    made(config)
    found = planned(config, facts(high=25))
    assert (found.state, found.opening, found.statements) == ("resumes", None, ())
    assert found.ranges == (OffsetRange(T0, 10, 25),)
    assert planned(config).ranges == ()
    assert planned(config).batches == 0


def test_batches_are_counted_by_the_limit(tmp_path: Path) -> None:
    config = configured(tmp_path, p={"source": {"topics": ["t"], "max_offsets_per_trigger": 4}})
    assert planned(config).batches == 4


def test_a_guard_halts_it_with_the_remedy_and_nothing_is_read(config: Config) -> None:
    made(config)
    found = planned(config, facts(topic="another"))
    assert (found.state, found.ranges, found.batches) == ("halts", (), 0)
    assert found.error is not None
    assert found.error.remedy


def test_what_kafka_has_deleted_is_lost_where_that_is_allowed(tmp_path: Path) -> None:
    config = configured(tmp_path, p={"source": {"topics": ["t"], "on_data_loss": "record"}})
    made(config)
    found = planned(config, facts(low=15, high=25))
    assert (found.opening, found.lost) == ("loss", (OffsetRange(T0, 10, 15),))
    assert found.ranges == (OffsetRange(T0, 15, 25),)


def test_a_broker_that_is_away_fails_it_with_what_the_broker_said(config: Config) -> None:
    found = planned(config, facts=AWAY)
    assert (found.state, found.error) == ("fails", AWAY)


def test_a_new_column_is_added_and_another_type_fails(tmp_path: Path) -> None:
    made(configured(tmp_path, p="t"), replace(ENTRY, columns=(("id", "BIGINT"),)))
    grown = configured(tmp_path, p={"source": {"topics": ["t"]}, "schema": "id BIGINT, n INT"})
    [statement] = planned(grown).statements
    assert statement.endswith("ADD COLUMNS (`n` INT)")
    other = configured(tmp_path, p={"source": {"topics": ["t"]}, "schema": "id STRING"})
    found = planned(other)
    assert found.error is not None
    assert (found.state, found.error.code) == ("halts", "RM414")


def test_nothing_is_written(config: Config, tmp_path: Path) -> None:
    planned(config)
    assert not (tmp_path / "lake").exists()
    path = made(config)
    before = DeltaTable(path).version()
    planned(config, facts(high=25))
    assert DeltaTable(path).version() == before


def test_the_text_is_80_columns_wide_and_names_what_is_done(config: Config) -> None:
    many = {replace(T0, partition=n): Watermarks(0, 7) for n in range(13)}
    wide = planned(config, KafkaFacts("K", {"t": "T"}, many))
    failed = planned(config, facts=AWAY)
    text = plan_text(RunPlan([wide, failed]))
    assert max(len(line) for line in text.splitlines() if "delta.`" not in line) <= 80
    assert "p: new; first records where its partitions start" in text
    assert "and 3 more partitions" in text
    assert "FAILED p" in text


def test_the_json_tells_ranges_and_errors(config: Config) -> None:
    found: dict[str, Any] = RunPlan([planned(config), planned(config, facts=AWAY)]).as_dict()
    reads, failed = found["pipelines"]
    assert reads["ranges"][0] == {
        "topic": "t",
        "partition": 0,
        "from_offset": 0,
        "until_offset": 10,
    }
    assert (reads["error"], failed["error"]["code"]) == (None, AWAY.code)
