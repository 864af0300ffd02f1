"""Appends as files and through Spark: in the model, in traces, and how a campaign tells them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.protocol.ways import why_not
from rivermouth.warehouse.delta.log import DeltaLog
from tests.builders import PIPELINE
from tests.faults.campaign.calls import CallControl, library
from tests.faults.campaign.plan import CALLS, FILES_POINTS, Kill, Ways, round_of
from tests.faults.campaign.ways import AMID, UNDERSTOOD, CommitWays, alter, altering
from tests.faults.campaign.world import PIPELINES, TABLES
from tests.faults.model.configurations import FILES
from tests.faults.model.definition import UNFIT, definition
from tests.faults.model.judge import Judge
from tests.faults.model.state import ALTER, ASK, RESTORE, Entry, Other, State, Table, Topic
from tests.faults.model.story import Story
from tests.faults.model.trace import ASKING, PROPERTY
from tests.faults.small_lake import Small

pytestmark = pytest.mark.unit


def test_a_restore_takes_a_definition_back_and_files_must_fit_it() -> None:
    log = (Other("CREATE"), Other(ALTER), Other(ASK), Other(RESTORE, 1))
    found = [definition(log[: n + 1]) for n in range(len(log))]
    assert found == [(0, False), (1, False), (2, True), (1, False)]
    for made, expected in ((1, ""), (0, UNFIT), (2, UNFIT)):
        entry = Entry("discovery", 1, 0, 0, commit=1, base=3, made=made)
        state = State(Table((*log, entry), 0, (), (entry,)), Topic(), ())
        assert Judge(FILES).violation(state).split(":")[0] == expected


# Traces


@pytest.mark.parametrize("rival", [False, True])
def test_a_commit_of_files_behind_that_of_others_is_no_path(rival: bool) -> None:
    story = Story().opened().committed((0, 0, 0), kind="discovery")
    story.planned((0, 0, 5)).announced((0, 0, 5))
    if rival:
        story.did("SET TBLPROPERTIES")
    story.landed().settled()
    assert story.check() == [], "Spark goes on top"
    story.as_files()
    assert ("version 3 holds entry 2" in str(story.check())) is rival
    assert bool(story.check()) is rival


@pytest.mark.parametrize(("value", "asks"), [(UNDERSTOOD, False), (ASKING, True)])
def test_a_commit_of_files_into_a_table_that_asks_for_spark_is_no_path(
    value: str, asks: bool
) -> None:
    story = Story().opened().committed((0, 0, 0), kind="discovery")
    story.did("SET TBLPROPERTIES", properties=json.dumps({PROPERTY: value}))
    story.said("close")
    story.opened("b").planned((0, 0, 5), by="b").announced((0, 0, 5), by="b").landed().settled("b")
    assert story.check() == [], "by Spark"
    story.as_files()
    assert ("asks for Spark's writer" in str(story.check())) is asks
    assert bool(story.check()) is asks


# The campaign


def one_batch(folder: Path, count: int = 1) -> Small:
    """A table with so many batches of six rows."""
    small = Small(folder)
    small.broker.add(*((n, 0) for n in range(6 * count)))
    for first in range(0, 6 * count, 6):
        small.batch([(n, 0, 0, n) for n in range(first, first + 6)], (0, first, first + 6))
    return small


def some_of(names: Sequence[str]) -> set[tuple[str, ...]]:
    """All choices of some names."""
    return {each for n in range(len(names) + 1) for each in combinations(names, n)}


def test_a_long_campaign_goes_both_ways_and_changes_them_between_runs_and_in_one() -> None:
    rounds = [round_of(1, n) for n in range(400)]
    assert {each.ways.by_spark for each in rounds} == some_of(PIPELINES)
    assert {each.ways.asks for each in rounds} == some_of(TABLES)
    assert {each.ways.amid for each in rounds} == some_of(TABLES)
    files = [each for each in rounds if each.kill.detail.startswith(FILES_POINTS)]
    assert len(files) > 12
    assert {replace(each.ways, small=False) for each in files} == {Ways()}, "else nobody passes it"
    assert {each.ways.small for each in files} == {False, True}


def test_a_campaign_aims_at_points_as_at_calls() -> None:
    aimed = [round_of(7, n, ("P17", CALLS[3])).kill for n in range(2)]
    assert aimed == [Kill("point", "P17=1*kill"), Kill("call", CALLS[3])]


def test_who_armed_a_call_knows_that_it_has_killed_a_process_besides_the_driver(
    tmp_path: Path,
) -> None:
    preloaded, calls = library(tmp_path), CallControl(tmp_path / "calls")
    calls.arm("python", "create", 1)
    assert not calls.struck()
    code = f"open({str(tmp_path / 'new')!r}, 'w')"
    environment = {**os.environ, **calls.environment(preloaded)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == -9
    assert calls.struck()
    calls.disarm()
    assert not calls.struck()


def reason(table: Path) -> str:
    definition = DeltaLog.of_folder(table).definition()
    assert definition is not None
    return why_not(definition)


def test_an_altered_table_asks_for_spark_and_no_longer_once_it_is_altered_back(
    tmp_path: Path,
) -> None:
    table = one_batch(tmp_path).table
    assert reason(table) == ""
    assert not alter(table, asks=False)
    assert alter(table, asks=True)
    assert not alter(table, asks=True)
    assert "1 week 0 days" in reason(table)
    assert alter(table, asks=False)
    assert reason(table) == ""


def test_a_table_is_altered_amid_a_run_once_when_that_has_committed(tmp_path: Path) -> None:
    small = one_batch(tmp_path)
    look = altering([small.table], lambda: True)
    assert look()
    version = DeltaTable(str(small.table)).version()
    small.delete("id = 2")
    assert look()
    assert DeltaTable(str(small.table)).version() == version + 2
    small.delete("id = 3")
    assert look()
    assert DeltaTable(str(small.table)).version() == version + 3


def test_commits_are_told_by_way_and_a_change_by_the_run_it_came_in(tmp_path: Path) -> None:
    small, trace = one_batch(tmp_path, 4), tmp_path / "trace.jsonl"
    steps: list[dict[str, str]] = []
    runs = (("files", True), ("spark", False), ("spark", True), ("files", True))
    files = [*map(written_by, sorted(small.table.glob("_delta_log/*.json"))[-4:], runs)]
    for commit, (_, opens) in zip(files, runs, strict=True):
        common = {"process": "a", "pipeline": PIPELINE}
        steps += [{**common, "step": "open"}] if opens else []
        steps.append({**common, "step": "write", "commit": commit})
    found = CommitWays(trace, {PIPELINE: small.table})
    trace.write_text("\n".join(map(json.dumps, steps)))
    assert found.count() == Counter(files=2, spark=2, **{AMID: 1})
    assert found.count() == Counter()


def written_by(file: Path, run: tuple[str, bool]) -> str:
    """Let a commit say that it was made this way; its id."""
    actions = [json.loads(each) for each in file.read_text().splitlines()]
    about = next(each["commitInfo"] for each in actions if "commitInfo" in each)
    about["engineInfo"] = {"files": "rivermouth", "spark": "Apache-Spark/4"}[run[0]]
    file.write_text("\n".join(map(json.dumps, actions)))
    return str(json.loads(about["userMetadata"])["commit"])
