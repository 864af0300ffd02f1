"""The wheel that this source makes, and what its metadata says."""

from __future__ import annotations

import email
import subprocess
import sys
import tempfile
import zipfile
from email.message import Message
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build the wheel into a folder; its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("rivermouth-*.whl")
    return wheel


@cache
def metadata() -> Message:
    """The wheel's own metadata. What is installed here may be of another day."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(build(Path(folder))) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def requirements() -> list[str]:
    """The ``Requires-Dist`` lines of the wheel."""
    return [str(each) for each in metadata().get_all("Requires-Dist", [])]
