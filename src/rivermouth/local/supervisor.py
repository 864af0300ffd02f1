"""Runs one child process until its owner stops it or ends, however the owner ends.

A script that needs only the standard library:

    supervisor.py OWNER_PID LOG REMOVE COMMAND...

The child runs in its own session and writes to LOG; the supervisor prints the child's process
id, and nothing else. The owner holds the other end of standard input: a byte means "stop"; an
end of file, or another parent than OWNER_PID, means that the owner has ended. Then the supervisor
ends the child and deletes the folder REMOVE (an empty text: none). It polls the parent because a
forked copy of the owner may keep the pipe open.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys

POLL_SECONDS = 0.2
GRACE_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    owner, log, remove, command = int(arguments[0]), arguments[1], arguments[2], arguments[3:]
    with open(log, "ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    asked = _wait(child, owner)
    _end(child, GRACE_SECONDS if asked else 0.0)
    if remove and not asked:
        shutil.rmtree(remove, ignore_errors=True)
    return 0


def _wait(child: subprocess.Popen[bytes], owner: int) -> bool:
    """Wait for the child's end, for "stop", or for the owner's end; False for the owner's end."""
    while os.getppid() == owner:
        readable, _, _ = select.select([0], [], [], POLL_SECONDS)
        if readable:
            return os.read(0, 1) != b""
        if child.poll() is not None:
            return True
    return False


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM, wait ``grace`` seconds, then send SIGKILL to the whole session."""
    if child.poll() is None and grace:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it may have ended
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
