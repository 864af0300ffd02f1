"""What is kept of a verification: which record follows on which, and where none can be written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verification import recording
from rivermouth.verification.beginning import standing
from rivermouth.verification.proved import (
    Before,
    Place,
    Proved,
    Reach,
    Recording,
    RecordState,
    moment,
)
from rivermouth.verification.recording import (
    Attempt,
    ProofFiles,
    beside_offsets,
    record_states,
    settled,
    to_record,
)
from rivermouth.verification.result import Kind, PipelineProof, Unchecked
from tests.folders import folder_of_config, lake_of
from tests.unit.verification.doubles import CREATE, MemoryCommits, commit, configured

pytestmark = pytest.mark.unit

POSITION = {"t": {"0": 8}}
OLD = Proved("p", "t.p", 1, Place(2, "p-2", 2), {"t": {"0": 4}}, 1000, 2, 1000, left={"values": 1})
FULL = Proved("p", "t.p", 1, Place(4, "p-4", 4), POSITION, 5000, 4, 5000)


def proof(
    before: Before | None = None, found: int = 0, last: int = 4, **facts: Any
) -> PipelineProof:
    reach = Reach(1 if before is None else before.entry, Place(last, f"p-{last}", last), POSITION)
    facts = {"reach": replace(reach, before=before), "counts": {Kind.MISSING: found}, **facts}
    return PipelineProof("p", 2, 4, 0, None, **facts)


def attempt(made: PipelineProof, then: Recording) -> Attempt:
    return Attempt(made, then, 5000, 9000)


SINCE = Before(2, 1000)
EXTENDED = replace(FULL, full_entry=2, full_ms=1000, left={"values": 1})
FURTHER = replace(FULL, last=Place(9, "p-9", 9), at_ms=6000, full_entry=2, full_ms=1000)
TABLE: Mapping[str, tuple[PipelineProof, Proved | None, Proved | None, Proved | str | None]] = {
    "the first": (proof(), None, None, FULL),
    "another of all": (proof(), OLD, OLD, FULL),
    "after a fault was mended": (
        proof(),
        replace(FURTHER, failed_ms=1),
        replace(FURTHER, failed_ms=1),
        FULL,
    ),
    "of a part": (proof(SINCE), OLD, OLD, EXTENDED),
    "of a part behind former records": (
        proof(SINCE),
        replace(OLD, former={"t": {"0": 4}}),
        replace(OLD, former={"t": {"0": 4}}),
        replace(EXTENDED, former={"t": {"0": 4}}),
    ),
    "of a part, with more unchecked": (
        proof(SINCE, left={Unchecked.VALUES: 2}),
        OLD,
        OLD,
        replace(EXTENDED, left={"values": 3}),
    ),
    "of a part, with more to come": (
        proof(SINCE, left={Unchecked.UNCOVERED: 8, Unchecked.AHEAD: 1}),
        OLD,
        OLD,
        EXTENDED,
    ),
    "of a part, strictly": (proof(SINCE, strict=True), OLD, OLD, EXTENDED),
    "of a part that nothing proves": (
        proof(Before(2)),
        None,
        None,
        "entries up to 2 were not checked",
    ),
    "a fault": (proof(found=1), OLD, OLD, replace(OLD, failed_ms=9000)),
    "a fault of a part": (proof(SINCE, found=1), OLD, OLD, replace(OLD, failed_ms=9000)),
    "a fault, and nothing on record": (proof(found=1), None, None, None),
    "not all was checked": (
        proof(strict=True, left={Unchecked.VALUES: 1}),
        OLD,
        OLD,
        "with --strict, not everything could be checked",
    ),
    "no entry": (proof(reach=None), None, None, None),
    "all, while a part was recorded that reaches further": (
        proof(),
        OLD,
        FURTHER,
        replace(FURTHER, full_entry=4, full_ms=5000),
    ),
    "all, and what was on record reached further, of a table that is gone": (
        proof(),
        replace(FURTHER, at_ms=1),
        replace(FURTHER, at_ms=1),
        FULL,
    ),
    "all, while a fault was found": (
        proof(),
        OLD,
        replace(OLD, failed_ms=6000),
        "another verification found a fault meanwhile",
    ),
    "a part, while others may have changed rows of what is before": (
        proof(SINCE, left={Unchecked.FOREIGN: 1}),
        OLD,
        OLD,
        "others may have changed rows that were not read again",
    ),
    "all, while others may have changed rows": (
        proof(left={Unchecked.FOREIGN: 1}),
        OLD,
        OLD,
        replace(FULL, left={"commits_of_others": 1}),
    ),
    "a part, while something else was recorded": (
        proof(SINCE),
        OLD,
        FURTHER,
        "another verification recorded its proof meanwhile",
    ),
    "a part, while a fault was found": (
        proof(SINCE),
        OLD,
        replace(OLD, failed_ms=1),
        "another verification recorded its proof meanwhile",
    ),
    "since a time before the proof, which reaches further": (
        proof(SINCE, last=3),
        FURTHER,
        FURTHER,
        "the recorded proof reaches further",
    ),
}


@pytest.mark.parametrize("case", [*TABLE])
def test_what_is_recorded_follows_from_what_was_proved_and_is_on_record(
    tmp_path: Path, case: str
) -> None:
    made, then, now, expected = TABLE[case]
    pipeline = configured(tmp_path).pipelines["p"]
    assert to_record(pipeline, attempt(made, Recording(then)), now) == expected


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    proofs = ProofFiles(tmp_path / "rivermouth" / "proofs")
    assert proofs.read("p") == Recording()
    for each in (OLD, replace(FULL, failed_ms=1, strict=True)):
        proofs.write(each)
        assert proofs.read("p") == Recording(each)
    assert [each.name for each in proofs.folder.iterdir()] == ["p.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"rivermouth_proof": 2}', '{"rivermouth_proof": 1}'])
def test_a_record_that_cannot_be_read_is_none_and_is_written_anew(
    tmp_path: Path, text: str
) -> None:
    proofs = ProofFiles(tmp_path)
    (tmp_path / "p.json").write_text(text, encoding="utf-8")
    known = proofs.read("p")
    assert known.proved is None
    assert str(known.problem).startswith("the recorded proof cannot be read")
    settled(proofs, configured(tmp_path).pipelines["p"], attempt(proof(), known))
    assert proofs.read("p") == Recording(FULL)


def test_a_place_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "proofs").write_text("a file where the folder should be", encoding="utf-8")
    pipeline = configured(tmp_path).pipelines["p"]
    proofs = ProofFiles(tmp_path / "proofs")
    bad = settled(proofs, pipeline, attempt(proof(found=1), Recording()))
    good = settled(proofs, pipeline, attempt(proof(), Recording()))
    assert (bad.ok, good.ok) == (False, True)
    assert json.dumps(good.as_dict())
    assert good.recording is not None
    assert str(good.recording.problem).startswith("the record cannot be written")


def test_without_recording_nothing_is_on_record(tmp_path: Path) -> None:
    pipeline = configured(tmp_path).pipelines["p"]
    assert settled(None, pipeline, attempt(proof(), Recording())).recording is None


def test_whether_a_record_stands_is_told_from_the_log() -> None:
    log = MemoryCommits([CREATE, commit(1, 0, 2), commit(2, 2, 4), commit(3, 4, 6)])
    assert standing(log, OLD, 10) == RecordState(OLD)
    assert standing(log, OLD, 0) == RecordState(OLD, unread=1)
    behind, before = (replace(OLD, former={"t": {"0": until}}) for until in (4, 5))
    assert standing(log, behind, 10) == RecordState(behind)
    assert "an accepted change" in (standing(log, before, 10).void or "")
    assert standing(log, replace(OLD, last=Place(2, "x", 2)), 10).void is not None
    failed = replace(OLD, failed_ms=0)
    assert standing(log, failed, 10).void == f"a verification at {moment(0)} found a fault"
    told = standing(log, OLD, 10).as_dict()
    assert (told["entry"], told["stands"], told["void"]) == (2, True, None)


def test_the_commits_that_are_read_for_all_pipelines_are_limited_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(tmp_path)
    pipeline = config.pipelines["p"]
    log = pipeline.target.table.path(folder_of_config(config)) / "_delta_log"
    log.mkdir(parents=True)
    for version, made in enumerate((CREATE, commit(1, 0, 2), commit(2, 2, 4), commit(3, 4, 6))):
        txns = [{"txn": {"appId": app, "version": n}} for app, n in made.txns.items()]
        lines = [json.dumps(each) for each in ({"commitInfo": made.info}, *txns)]
        (log / f"{version:020d}.json").write_text("\n".join(lines), encoding="utf-8")
    beside_offsets(lake_of(config)).write(OLD)
    others = {"p": pipeline, "q": pipeline, "r": pipeline}
    assert record_states(config)(pipeline) == RecordState(OLD)
    monkeypatch.setattr(recording, "_AT_MOST", 2)
    assert record_states(config)(pipeline) == RecordState(OLD)
    many = config.model_copy(update={"pipelines": others})
    assert record_states(many)(pipeline) == RecordState(OLD, unread=1), "a third of two is none"
