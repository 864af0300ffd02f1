"""Processes of a test's own: started, looked at, and ended however the test goes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from tests.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[1]

_DUMPED_S = 2.0

Started = AbstractContextManager[subprocess.Popen[str]]
"""A process to be entered: it ends with the block."""


@contextmanager
def started(
    command: Sequence[str],
    environ: Mapping[str, str],
    stderr: int = subprocess.STDOUT,
    *,
    cwd: Path = ROOT,
) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, all it says in one pipe, or ``stderr`` in another.

    Nothing of it outlives the block: what it started goes along, such as a JVM and its workers.
    """
    process = subprocess.Popen(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        end_session(process.pid)
        said_by(process)  # to the end of the pipe: what it started holds it, too


def said_by(process: subprocess.Popen[str]) -> str:
    """All that a started process says, to its end.

    Raises TimeoutError for one that does not end, with what it has said. A driver of ours
    (``tests.driver``) is asked where its threads stand.
    """
    try:
        return process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        command = str(process.args)
        if "tests.driver" in command:  # another one would end by the signal
            process.send_signal(signal.SIGUSR1)
            time.sleep(_DUMPED_S)
        end_session(process.pid)
        raise TimeoutError(f"{command} did not end: {process.communicate()[0]}") from None


def end_group(group: int) -> None:
    """Kill a group of processes, of which some or all may have ended by now."""
    with suppress(ProcessLookupError, PermissionError):  # none is left; only zombies are
        os.killpg(group, signal.SIGKILL)


def end_session(session: int) -> None:
    """Kill every process of a session, and return when none is left.

    Spark's Python workers are in a group of their own. They go on with the rows they have when
    the driver is killed, so what they write is not at rest before they have ended, too.
    """

    def none_is_left() -> bool:
        groups = {
            int(pgid)
            for pid, pgid, stat in listed("pgid", "stat")
            if stat[0] != "Z" and _session(int(pid)) == session
        }
        for group in groups:
            end_group(group)
        return not groups

    wait_for(none_is_left, f"a process of session {session} does not end")


def _session(pid: int) -> int | None:
    """The session of a process; None where it has ended by now, or is not ours to see."""
    with suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def processes(group: int) -> dict[int, str]:
    """The command lines in a group of processes, by process id."""
    return {int(pid): args for pid, pgid, args in listed("pgid", "args") if int(pgid) == group}


def jvm_of(process: subprocess.Popen[str]) -> int:
    """The JVM of a driver that has opened a pipeline: the one it started, not what that starts."""
    started_by_it = (line for line in listed("ppid", "comm") if int(line[1]) == process.pid)
    [jvm] = (int(pid) for pid, _, name in started_by_it if Path(name).name == "java")
    return jvm


def listed(*columns: str) -> list[list[str]]:
    """Of each process here its id and these columns; the last may hold spaces."""
    command = ["ps", "-A", "-ww", "-o", ",".join(f"{each}=" for each in ("pid", *columns))]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.rstrip().split(None, len(columns)) for line in shown.splitlines()]
