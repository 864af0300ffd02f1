"""A started process ends with its block, with all it started, and may have ended before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import started
from tests.waiting import wait_for


def test_what_it_started_in_turn_ends_with_the_block() -> None:
    with started(["sh", "-c", "sleep 600 & echo $!; wait"], os.environ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) != process.pid
    wait_for(lambda: set(states(process.pid)) <= {"Z"})


def test_a_group_of_its_own_in_the_session_has_ended_when_the_block_has() -> None:
    code = "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(600)"
    with started(["sh", "-c", f"{sys.executable} -c '{code}' & wait"], os.environ) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        assert set(states(group)) == {"S"}
    assert set(states(group)) <= {"Z"}


def states(group: int) -> list[str]:
    """How each process of a group is."""
    shown = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True)
    lines = [line.split() for line in shown.stdout.splitlines()]
    return [stat[0] for pgid, stat in lines if int(pgid) == group]


@pytest.mark.parametrize("waited", [False, True])
def test_one_that_has_ended_is_no_failure(waited: bool) -> None:
    with started(["sh", "-c", "echo done"], os.environ) as process:
        said = process.communicate(timeout=30)[0] if waited else "done\n"
    assert said == "done\n"


def test_a_test_that_fails_in_the_block_fails_for_its_own_reason() -> None:
    with pytest.raises(AssertionError, match="mine"), started(["sleep", "600"], os.environ):
        raise AssertionError("mine")
