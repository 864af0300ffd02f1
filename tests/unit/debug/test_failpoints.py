"""Points at which a test may kill the process: off unless asked, exact when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

PASS = """
import sys
from rivermouth.debug import reach
for point in sys.argv[1:]:
    reach(point)
    print(point, flush=True)
"""
WALK = ["P1", "P6", "P1", "P6", "P1"]


@pytest.mark.kill
@pytest.mark.parametrize(
    ("asked", "passed"),
    [
        (None, 5),
        ("", 5),
        ("P7=kill", 5),
        ("P1=2", 5),
        ("P1=kill", 0),
        ("P6=kill", 1),
        ("P1=2*kill", 2),
        ("P6=2*kill", 3),
        ("P1=3*kill,P6=2*kill", 3),
        ("P1=4*kill", 5),
    ],
)
def test_a_process_dies_at_the_point_it_was_told_to_and_not_before(
    asked: str | None, passed: int
) -> None:
    environ = {key: value for key, value in os.environ.items() if key != "RIVERMOUTH_FAILPOINTS"}
    if asked is not None:
        environ["RIVERMOUTH_FAILPOINTS"] = asked
    done = subprocess.run(
        [sys.executable, "-c", PASS, *WALK],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == WALK[:passed]
    assert done.returncode == (0 if passed == len(WALK) else -signal.SIGKILL)
