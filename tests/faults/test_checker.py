"""The checker is checked: a good run has no finding, and each corruption has its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from rivermouth.write.files import due
from tests.faults.checker.check import check
from tests.faults.checker.evidence import Evidence, Watched
from tests.faults.checker.log import Log
from tests.faults.checker.reader import SnapshotReader
from tests.faults.checker.scene import Scene
from tests.faults.checker.story import ABORTED, EVENTFUL, EVENTS, LAST, STATE, Story
from tests.faults.checker.verdict import Fault, Verdict
from tests.faults.checker_corruptions import CORRUPTIONS
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

SECRET = "canary-7c0e55"
ADDING = {"a range again", "a promise not kept", "a secret in a text", "undone, and gone on"}
"""Corruptions that add to what was there, as a run would."""


def watched(lake: Path) -> tuple[Watched, Watched, Watched]:
    """What the pipelines should hold."""
    append = Watched(
        name="events",
        topics=(EVENTS,),
        table=lake / "bronze" / "events",
        quarantine=lake / "bronze" / "events_quarantine",
        columns=(("id", "BIGINT"), ("text", "STRING")),
    )
    upsert = Watched(
        name="state",
        topics=(STATE,),
        table=lake / "silver" / "state",
        quarantine=lake / "silver" / "state_quarantine",
        columns=(("id", "BIGINT"), ("value", "STRING"), ("seq", "BIGINT")),
        keys=("id",),
        order_by=("seq",),
        key_format="string",
    )
    marked = replace(upsert, name="marked", table=lake / "silver" / "marked")
    return append, upsert, replace(marked, quarantine=lake / "silver" / "marked_quarantine")


def configure(lake: Lake) -> None:
    """The same for the product; a checkpoint is written at every third commit.

    The rows of one upsert are marked as deleted. Files of the other one can be written anew, row by
    row: it has no vectors.
    """
    source = {"format": "json", "max_offsets_per_trigger": 16}
    properties = {"delta.checkpointInterval": "3"}
    upsert = {"mode": "upsert", "keys": ["id"], "order_by": ["seq"]}
    unmarked = {**properties, "delta.enableDeletionVectors": "false"}
    state = {
        "source": {"topics": [STATE], "key": "string", **source},
        "schema": "id BIGINT, value STRING, seq BIGINT",
    }
    lake.configure(
        events={
            "source": {"topics": [EVENTS], **source},
            "schema": "id BIGINT, text STRING",
            "target": {"table": "bronze.events", "properties": properties},
        },
        state={**state, "target": {"table": "silver.state", "properties": unmarked, **upsert}},
        marked={**state, "target": {"table": "silver.marked", "properties": properties, **upsert}},
    )


@dataclass(frozen=True)
class CheckedRun:
    """The evidence of a whole run, and what a check said in its middle and, going on, after it.

    ``marked`` is of the table with deletion vectors.
    """

    scene: Scene
    marked: Evidence
    middle: Verdict
    then: Verdict


@pytest.fixture(scope="module")
def run(
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> CheckedRun:
    """A good run of the product, watched by a concurrent reader.

    It compacts nothing: corruptions are of the files that entries name, and of their vectors.
    """
    folder = tmp_path_factory.mktemp("checker") / "run"
    folder.mkdir()
    lake = Lake(folder, rivermouth_broker.bootstrap_servers)
    history, snapshots, log = (folder / name for name in ("history", "snapshots", "run.log"))
    pipelines = watched(lake.warehouse)
    evidence = Evidence(
        lake.servers, lake.warehouse, pipelines[:2], history, snapshots, (log,), (SECRET,)
    )
    for topic in (EVENTS, STATE):
        lake.topic(topic, 2)
    configure(lake)
    story = Story(lake.servers, history)
    verdicts: list[Verdict] = []
    for writes, aborted in ((EVENTFUL, ABORTED), (LAST, ())):
        for each in writes:
            story.write(each)
        story.write(aborted, commit=False)
        with (
            SnapshotReader(pipelines, snapshots, pause_s=0.02),
            patch.multiple(due, TOGETHER=1_000, DELETED=2.0),
        ):
            heard = lake.run(rivermouth_spark, *(each.name for each in pipelines))
        assert [each.error for each in heard.ends] == [None] * len(pipelines)
        log.write_text("\n".join(each.line() for each in heard.commits), encoding="utf-8")
        verdicts.append(check(evidence, verdicts[-1].cursor if verdicts else None))
    marked = replace(evidence, pipelines=pipelines[2:])
    return CheckedRun(Scene(folder, evidence), marked, *verdicts)


@pytest.fixture(scope="module")
def sparse(run: CheckedRun, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The same with a reader that came only at the start and at the end.

    What it saw in between differs from run to run, and so would the faults of a corruption.
    """
    copied = run.scene.copy(tmp_path_factory.mktemp("checker") / "sparse")
    lines = copied.lines(copied.evidence.snapshots)
    tables = {each["table"]: [e for e in lines if e["table"] == each["table"]] for each in lines}
    kept = [each for seen in tables.values() for each in (seen[0], seen[-1])]
    copied.write_lines(copied.evidence.snapshots, kept)
    return copied


def test_a_good_run_has_no_finding_as_a_whole_or_bit_by_bit(run: CheckedRun) -> None:
    whole = check(run.scene.evidence)
    assert (whole.ok, run.middle.ok, run.then.ok) == (True, True, True), str(whole)
    assert whole.records == run.then.records == sum(map(len, (*EVENTFUL, *LAST)))
    assert whole.entries == run.then.entries > run.middle.entries >= 6
    assert whole.snapshots >= 4
    assert whole.unchecked == 0
    seen = run.scene.lines(run.scene.evidence.snapshots)
    assert len(seen) >= 4, "the reader should have come in the middle of the run"


def test_a_good_run_has_no_finding_where_rows_are_marked_as_deleted(run: CheckedRun) -> None:
    log = Log(run.marked.pipelines[0].table)
    log.update()
    assert any(each.vector for each in log.files)
    verdict = check(run.marked)
    assert (verdict.ok, verdict.unchecked) == (True, 0), str(verdict)
    assert verdict.snapshots >= 4


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_corruption_is_found_with_its_faults_and_no_other(
    corruption: str, sparse: Scene, tmp_path: Path
) -> None:
    spoil, faults = CORRUPTIONS[corruption]
    spoilt = sparse.copy(tmp_path / "spoilt")
    before = check(spoilt.evidence) if corruption in ADDING else None
    spoil(spoilt)
    verdict = check(spoilt.evidence)
    assert verdict.faults == faults, str(verdict)
    if before is not None:
        again = check(spoilt.evidence, before.cursor)
        assert again.faults == faults, str(again)


def test_every_class_of_fault_is_provoked() -> None:
    assert {fault for _, faults in CORRUPTIONS.values() for fault in faults} == set(Fault)
    assert CORRUPTIONS.keys() >= ADDING


@pytest.mark.parametrize("accepted", [True, False])
def test_going_on_after_a_restore_is_right_if_somebody_accepted_it(
    accepted: bool, sparse: Scene, tmp_path: Path
) -> None:
    scene = sparse.copy(tmp_path / "restored")
    append, (version, undone) = scene.append, scene.clean_entries(scene.append)[-1]
    added = scene.restore_before(append.table, version)
    _, stood = scene.entries(append)[-2]
    resumed: dict[str, Any] = {**stood, "sequence": undone["sequence"] + 1, "commit": "resumed"}
    resumed.pop("rows", None)
    resumed["ranges"] = [[*each[:2], each[3], each[3]] for each in stood["ranges"]]
    if accepted:
        resumed["accepts"] = {"kind": "restore", "version": 0, "standing": stood["sequence"]}
    scene.add_entry(append, resumed)
    again = {**undone, "sequence": resumed["sequence"] + 1, "commit": "again"}
    scene.add_entry(append, again, *added)

    evidence = replace(scene.evidence, settled=False)
    verdict = check(evidence)
    assert verdict.faults == (set() if accepted else {Fault.UNDONE}), str(verdict)
    scene.restore_before(append.table, version + 3)
    scene.restore_before(append.table, version + 2)
    assert check(evidence).ok, "what was written over an undoing has been undone itself"


def test_log_cleanup_leaves_the_offsets_table_to_tell_of_earlier_entries(
    sparse: Scene, tmp_path: Path
) -> None:
    scene = sparse.copy(tmp_path / "trimmed")
    for each in (scene.append, scene.upsert):
        checkpoint = max(each.table.glob("_delta_log/*.checkpoint.parquet"))
        for file in each.table.glob("_delta_log/*.json"):
            if file.name[:20] < checkpoint.name[:20]:
                file.unlink()
    verdict = check(scene.evidence)
    assert verdict.ok, str(verdict)
    rows = scene.rows(scene.evidence.offsets)
    one = next(each for each in rows if each["sequence"] == 2 and each["from_offset"] == 0)
    scene.drop_row(scene.evidence.offsets, one)
    assert check(scene.evidence).faults >= {Fault.PROJECTION}


def test_a_table_whose_log_was_put_back_is_read_anew(sparse: Scene, tmp_path: Path) -> None:
    scene = sparse.copy(tmp_path / "put-back")
    before = check(scene.evidence)
    scene.remove_commit(scene.append.table, scene.entries(scene.append)[-1][0])
    verdict = check(scene.evidence, before.cursor)
    assert verdict.findings == check(scene.evidence).findings
    assert verdict.faults == {Fault.PROJECTION, Fault.UNSEEN, Fault.TORN}, str(verdict)
