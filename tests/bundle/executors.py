"""Two small executors for the workspace's own tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bundle.workspace.executor import Outcome, Task
from tests.waiting import PATIENCE_S

# A pure wheel can be imported as it is; its metadata names the entry points.
PROGRAM = """
import sys
from importlib.metadata import distribution

wheel, package, name, *arguments = sys.argv[1:]
sys.path.insert(0, wheel)
(point,) = distribution(package).entry_points.select(name=name)
sys.argv = [name, *arguments]
point.load()()
"""


def runs_the_wheel(task: Task) -> Outcome:
    """Run the entry point straight out of the one uploaded wheel, which needs no other."""
    (wheel,) = task.libraries
    asked = task.settings["python_wheel_task"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(wheel).name)
        path.write_bytes(task.read_file(wheel))
        names = (str(path), asked["package_name"], asked["entry_point"])
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROGRAM, *names, *task.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return Outcome(done.stdout, done.returncode)


def waits_for_its_end(task: Task) -> Outcome:
    """A stream: goes on until it is cancelled."""
    ended = task.cancelled.wait(PATIENCE_S)
    return Outcome("cancelled" if ended else "nobody cancelled it")
