"""What an operator may write after ``resume``, and how what was accepted is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rivermouth.errors import ConfigError
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.protocol.accept_changes import CHANGES, ROLLBACKS, check_accepted, read_offsets
from rivermouth.protocol.entry import Change
from rivermouth.run.outcome import accepted, verified
from rivermouth.run.tables import status_table as render
from rivermouth.verification.result import Findings, Verification
from tests.builders import position
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit


def test_all_kinds_of_changes_can_be_named() -> None:
    assert [*CHANGES] == [each.value for each in Change]


@pytest.mark.parametrize("words", [*ROLLBACKS, *CHANGES, "topic,partitions,identity"])
def test_words_by_which_something_is_accepted(words: str) -> None:
    check_accepted(words)


@pytest.mark.parametrize("words", ["", "all", "restore,reset", "topic,reset", "topic,,identity"])
def test_other_words_are_refused_before_anything_starts(
    rivermouth: Rivermouth, lake_yml: Path, words: str
) -> None:
    with pytest.raises(ConfigError, match="write one of restore or reset"):
        check_accepted(words)
    ended = rivermouth("resume", lake_yml, "bids", "--accept", words)
    assert (ended.code, "write one of restore or reset" in ended.err) == (2, True)


@pytest.mark.parametrize("words", [*ROLLBACKS, "topic", "identity,partitions"])
def test_positions_that_nothing_asks_for_are_refused(words: str) -> None:
    with pytest.raises(ConfigError, match="only --accept cluster asks for it"):
        check_accepted(words, "start")
    check_accepted("cluster, partitions", "start")


def test_positions_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    file.write_text('{"t": {"0": 7, "1": 9}}', encoding="utf-8")
    assert read_offsets(str(file)) == position(7, 9)
    assert [read_offsets(each) for each in ("", "same", "start")] == [None, "same", "start"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"t": 1}',
        '{"t": {"a": 1}}',
        '{"t": {"0": -1}}',
        '{"t": {"0": 1.0}}',
        '{"t": {"0": true}}',
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "positions.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="a file of positions"):
        read_offsets(str(file))


def test_what_was_accepted_is_told_by_the_command_and_for_ever_by_status_and_verify() -> None:
    assert accepted("p", "topic", position(4)).splitlines() == [
        "p: t-0 continues at 4",
        "OK: topic accepted",
    ]
    assert "nothing was written" in accepted("p", "topic", position(4), dry_run=True)
    found = PipelineStatus("p", State.OK, "t.p", accepted=(("topic", 3),))
    assert render(Status([found])).splitlines()[-1] == "p: accepted: topic, in entry 3"
    assert found.as_dict()["accepted"] == [{"change": "topic", "entry": 3}]
    proof = replace(Findings("p").proof(), accepted=("topic, in entry 3",))
    assert "p: accepted: topic, in entry 3" in verified(Verification([proof]))
