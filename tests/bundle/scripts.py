"""Scripts of ``jobs/``, one after another in one process: ``python -m tests.bundle.scripts LINE…``.

A line is a script's name and its words, quoted as for a shell. After each script comes a line that
says how it ended.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path

JOBS = Path(__file__).parents[2] / "jobs"


def run(line: str) -> int:
    """The exit code of one script, run as ``python SCRIPT WORDS…`` runs it."""
    script, *words = shlex.split(line)
    sys.argv = [script, *words]
    try:
        runpy.run_path(str(JOBS / script), run_name="__main__")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def ending(line: str, code: int) -> str:
    """What is said after a script."""
    return f"{line.partition(' ')[0]} ended with {code}"


if __name__ == "__main__":
    for each in sys.argv[1:]:
        sys.stdout.write(f"{ending(each, run(each))}\n")
        sys.stdout.flush()
