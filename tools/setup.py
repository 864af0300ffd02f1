"""Find a supported Python and run install.py with it: the first step of every make target.

An unsupported Python must be able to run this file, to print one line; so its syntax is plain.
Standard library only.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALL = os.path.join(HERE, "install.py")


def supported() -> list:
    """The versions that pyproject.toml names, the newest first."""
    with open(os.path.join(HERE, os.pardir, "pyproject.toml")) as project:
        bounds = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project.read())
    oldest, above = int(bounds.group(1)), int(bounds.group(2))
    return [(3, minor) for minor in range(above - 1, oldest - 1, -1)]


SUPPORTED = supported()


def starts(command: str) -> bool:
    """Whether it starts: version managers put commands on PATH that start nothing."""
    code = "import sys; sys.exit(sys.version_info[:2] not in " + repr(SUPPORTED) + ")"
    quiet = subprocess.DEVNULL
    return subprocess.call([command, "-c", code], stdout=quiet, stderr=quiet) == 0


def supported_python() -> str:
    """This Python if it is supported, else the newest supported one on PATH, else ''."""
    if sys.version_info[:2] in SUPPORTED:
        return sys.executable
    for major, minor in SUPPORTED:
        command = shutil.which("python" + str(major) + "." + str(minor))
        if command and starts(command):
            return command
    return ""


if __name__ == "__main__":
    python = supported_python()
    if not python:
        oldest, newest, found = (
            ".".join(str(part) for part in version)
            for version in (SUPPORTED[-1], SUPPORTED[0], sys.version_info[:3])
        )
        sys.stderr.write(
            "set-up: Python "
            + oldest
            + " to "
            + newest
            + " is needed; found "
            + found
            + ". Install one, or name it: make PYTHON=/path/to/python3.12\n"
        )
        sys.exit(2)
    sys.exit(subprocess.call([python, INSTALL]))
