"""The trace of the protocol: off by default, one JSON line per step when asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rivermouth import debug
from tests.builders import place
from tests.doubles import Driver, Killed, World

pytestmark = pytest.mark.unit


def steps(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv("RIVERMOUTH_TRACE", str(file))
    return file


def test_a_run_notes_every_step_in_order(file: Path) -> None:
    Driver(World(ends={place(): 5})).open().batch(3)
    found = steps(file)
    ends = ["returned", "read_back", "project"]
    steps_of = ["open", "plan", "write", *ends, "plan", "write", "see", *ends]
    assert [each["step"] for each in found] == steps_of
    assert len({each["process"] for each in found}) == 1
    assert {each["pipeline"] for each in found} == {"orders"}
    opened, discovery, *_ = found
    assert (opened["sequence"], opened["standing"], opened["position"]) == (0, 0, {})
    assert (discovery["kind"], discovery["sequence"], discovery["ranges"]) == (
        "discovery",
        1,
        [["t", 0, 0, 0]],
    )
    plan, write, see, returned, read_back, project = found[6:]
    assert (plan["kind"], plan["ranges"]) == ("batch", [["t", 0, 0, 3]])
    assert write["position"] == {"t": {"0": 3}}
    assert write["commit"] == see["commit"] == returned["commit"] == read_back["commit"]
    assert (plan["beside"], see["again"]) == (True, False)
    assert (returned["fault"], read_back["outcome"], project["sequence"]) == (None, "committed", 2)


def test_a_killed_process_has_no_further_lines_and_a_resume_says_what_it_is(file: Path) -> None:
    world = World(ends={place(): 5})
    with pytest.raises(Killed):
        Driver(world).open().batch(3, crash="write returned")
    assert steps(file)[-1]["step"] == "see"
    world.truncate()
    Driver(world).ingest.resume("reset")
    plan = next(each for each in steps(file) if each.get("kind") == "resume")
    assert (plan["sequence"], plan["ranges"]) == (3, [["t", 0, 0, 0]])


def test_without_being_asked_nothing_is_noted(tmp_path: Path) -> None:
    Driver(World(ends={place(): 5})).open()
    assert [*tmp_path.iterdir()] == []


def test_what_is_dear_to_tell_is_made_only_when_asked_for() -> None:
    def dear() -> object:
        raise AssertionError("made for nobody")

    debug.step("orders", "plan", ranges=dear)
