"""What was once written into a log stays readable for ever; what comes later is not guessed at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.commits import CommitRecord
from rivermouth.protocol.entry_json import from_json
from rivermouth.verify.ledger.log import read_ledger
from rivermouth.verify.result import Findings
from rivermouth.verify.tables.folder import FolderCommits
from tests.builders import replayed, span
from tests.doubles import Driver, World

pytestmark = pytest.mark.unit

WRITTEN: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(
    Path(__file__).with_name("ledger_v1.json").read_text("utf-8")
)
"""Two logs as version 0.1.0 wrote them: discovery, batches with and without counts, a loss, an
accepted RESTORE, an accepted reset. Never edit them: a new format gets a file of its own.
"""
ENTRIES = [
    json.loads(each["userMetadata"])
    for commits in WRITTEN.values()
    for each in commits
    if each["userMetadata"]
]


def records(commits: Sequence[Mapping[str, Any]]) -> list[CommitRecord]:
    return [
        CommitRecord(
            version=each["version"],
            timestamp_ms=each["version"],
            operation=each["operation"],
            parameters=each["parameters"],
            txns=each["txns"],
            user_metadata=each["userMetadata"],
        )
        for each in commits
    ]


def test_the_written_logs_hold_every_kind_of_entry() -> None:
    assert {each["rivermouth"] for each in ENTRIES} == {1}
    assert any("rows" in each for each in ENTRIES)
    assert any("rows" not in each for each in ENTRIES)
    assert any("lost" in each for each in ENTRIES)
    kinds = {each["accepts"]["kind"] for each in ENTRIES if "accepts" in each}
    assert kinds == {"restore", "reset"}


@pytest.mark.parametrize(
    "written", ENTRIES, ids=lambda each: f"{each['pipeline']}-{each['commit']}"
)
def test_an_entry_of_the_first_format_is_read_whole(written: Mapping[str, Any]) -> None:
    entry = from_json(json.dumps(written))
    assert entry is not None
    for name in ("pipeline", "sequence", "commit", "cluster", "table", "topics", "config"):
        assert getattr(entry, name) == written[name], name
    ranges = [[*vars(each.topic_partition).values()] for each in entry.ranges]
    ends = [[each.from_offset, each.until_offset] for each in entry.ranges]
    assert [[*place, *end] for place, end in zip(ranges, ends, strict=True)] == written["ranges"]
    assert entry.position.as_nested() == written["position"]
    counts = None if entry.rows is None else [[*vars(each).values()] for each in entry.rows]
    assert counts == written.get("rows")
    assert len(entry.lost) == len(written.get("lost", ()))
    assert (vars(entry.accepts) if entry.accepts else None) == written.get("accepts")


@pytest.mark.parametrize("pipeline", WRITTEN)
def test_the_written_logs_are_whole_chains_for_the_writer_and_for_verify(
    pipeline: str, tmp_path: Path
) -> None:
    commits = WRITTEN[pipeline]
    newest = json.loads(commits[-1]["userMetadata"])
    history = replayed(records(commits), pipeline)
    assert (history.faults, history.sequence) == ((), newest["sequence"])
    assert history.position.as_nested() == newest["position"]

    as_log(tmp_path / "_delta_log", commits)
    findings = Findings(pipeline)
    ledger = read_ledger(FolderCommits(tmp_path), pipeline, findings)
    assert findings.proof().problems == ()
    assert ledger is not None
    assert ledger.recorded[-1].sequence == newest["sequence"]


def as_log(folder: Path, commits: Sequence[Mapping[str, Any]]) -> None:
    """The commits as files of a log, as far as a ledger looks at them."""
    folder.mkdir()
    for each in commits:
        info = {
            "operation": each["operation"],
            "operationParameters": each["parameters"],
            "userMetadata": each["userMetadata"],
        }
        actions = [{"commitInfo": info}]
        actions += [{"txn": {"appId": a, "version": v}} for a, v in each["txns"].items()]
        text = "\n".join(map(json.dumps, actions))
        (folder / f"{each['version']:020d}.json").write_text(text, "utf-8")


def test_an_entry_of_a_later_format_halts_the_start_before_a_write() -> None:
    world = World(ends={span(0, 0).topic_partition: 5})
    Driver(world).open().batch()
    last = world.commits[-1]
    assert last.user_metadata is not None
    later = {**json.loads(last.user_metadata), "rivermouth": 3, "more": "than we know"}
    world.commits[-1] = replace(last, user_metadata=json.dumps(later))
    before = len(world.commits)

    with pytest.raises(LedgerBroken, match=r"format 3.*Upgrade rivermouth") as halted:
        Driver(world).open()

    assert (halted.value.code, halted.value.exit_code) == ("RM410", 3)
    assert len(world.commits) == before
