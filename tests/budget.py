"""What ``make test`` may cost, in one place, and what it did cost.

Most of the time of a test is a JVM and a Spark session for a run of a second. So both are counted,
and a run that starts more than it may fails, as does one with a test that takes long and has no
reason to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOST_JVMS = 120
MOST_SESSIONS = 10
LONG_S = 10.0
ROOM = 10
"""A slow machine, and workers that share its cores, take so many times as long."""
LONG: Mapping[str, str] = {
    "tests/connect/test_kills.py::test_a_driver_killed_at_the_point_leaves_every_record_once": (
        "the first batch on the only server of Connect"
    ),
}
"""Tests that take longer than ``LONG_S`` and are no thorough ones, each with its reason."""

_JVMS, _SESSIONS = "jvms", "sessions"


def prepare(folder: Path) -> None:
    """Let each JVM that is started from here on leave a file named by its id in ``folder``, and
    keep its temporary files there, as Python does.
    """
    for name in (_JVMS, _SESSIONS):
        (folder / name).mkdir()
    os.environ["TMPDIR"] = str(folder)
    add("JDK_JAVA_OPTIONS", f"-Djava.io.tmpdir={folder} {_leaving(folder / _JVMS)}")
    add("SPARK_SUBMIT_OPTS", session_option(folder))


def session_option(folder: Path) -> str:
    """The option of a JVM by which it counts as a Spark session."""
    return _leaving(folder / _SESSIONS)


def _leaving(folder: Path) -> str:
    return f"-Xlog:logging=off:file={folder}/%p"


def add(variable: str, options: str) -> None:
    """Put options into a variable of the environment, before those that are there."""
    given = os.environ.get(variable, "")
    if options not in given:
        os.environ[variable] = f"{options} {given}".strip()


@dataclass
class Cost:
    """What a run has cost: the JVMs and sessions of ``folder``, and the seconds of each test."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def count(self, name: str) -> int:
        return sum(1 for _ in (self.folder / name).iterdir())

    def lines(self) -> Iterator[str]:
        """What it was, for people."""
        yield f"JVMs: {self.count(_JVMS)} (at most {MOST_JVMS})"
        yield f"Spark sessions: {self.count(_SESSIONS)} (at most {MOST_SESSIONS})"

    def excess(self) -> Iterator[str]:
        """What a run of ``make test`` may not have cost; empty where all is well."""
        for name, most in ((_JVMS, MOST_JVMS), (_SESSIONS, MOST_SESSIONS)):
            if (found := self.count(name)) > most:
                yield f"{found} {name} were started, and at most {most} may be"
        for test, seconds in self.seconds.items():
            if seconds > LONG_S * ROOM and test.partition("[")[0] not in LONG:
                yield f"{test} took {seconds:.0f} s: mark it thorough, or give its reason in LONG"
