"""Find a Python that fits and let it run install.py: the first step of every make target.

This file alone must also be readable for Pythons that do not fit, to say so in one line;
hence its plain syntax. Standard library only.
"""

import os
import shutil
import subprocess
import sys

FITTING = ((3, 13), (3, 12), (3, 11), (3, 10))
INSTALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "install.py")


def starts(command: str) -> bool:
    """Whether it is a Python at all: version managers put empty shims on PATH."""
    code = "import sys; sys.exit(sys.version_info[:2] not in " + repr(FITTING) + ")"
    quiet = subprocess.DEVNULL
    return subprocess.call([command, "-c", code], stdout=quiet, stderr=quiet) == 0


def fitting_python() -> str:
    """This Python if it fits, else the newest that does on PATH, else nothing."""
    if sys.version_info[:2] in FITTING:
        return sys.executable
    for major, minor in FITTING:
        command = shutil.which("python" + str(major) + "." + str(minor))
        if command and starts(command):
            return command
    return ""


if __name__ == "__main__":
    python = fitting_python()
    if not python:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            "set-up: Python 3.10 to 3.13 is needed; found "
            + found
            + ". Install one, or name it: make PYTHON=/path/to/python3.12\n"
        )
        sys.exit(2)
    sys.exit(subprocess.call([python, INSTALL]))
