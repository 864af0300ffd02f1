"""A started process ends with its block, with all it started, and may have ended before."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.processes import started


def test_what_it_started_in_turn_ends_with_the_block() -> None:
    with started(["sh", "-c", "sleep 600 & echo $!; wait"], os.environ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) != process.pid
    shown = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True)
    left = [line.split() for line in shown.stdout.splitlines()]
    assert [state for group, state in left if int(group) == process.pid and state[0] != "Z"] == []


@pytest.mark.parametrize("waited", [False, True])
def test_one_that_has_ended_is_no_failure(waited: bool) -> None:
    with started(["sh", "-c", "echo done"], os.environ) as process:
        said = process.communicate(timeout=30)[0] if waited else "done\n"
    assert said == "done\n"


def test_a_test_that_fails_in_the_block_fails_for_its_own_reason() -> None:
    with pytest.raises(AssertionError, match="mine"), started(["sleep", "600"], os.environ):
        raise AssertionError("mine")
