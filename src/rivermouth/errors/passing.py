"""Whether an error may pass by itself, so that a run tries again; drawn from by ``run``."""

from __future__ import annotations

from enum import Enum


class Passing(Enum):
    """Whether what an error tells of may pass by itself."""

    NO = "no"
    """Somebody has to act first."""
    IF_IT_WORKED = "if it worked"
    """Nobody can tell; it may, where the pipeline has worked in this run before."""
    YES = "yes"


DISK = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Too many open files",
)
"""What a machine says of its disk. It matters most, wherever in a chain of causes it is said."""


def of_the_disk(text: str) -> str:
    """What a text says of the disk; empty where it says nothing of it."""
    return next((each for each in DISK if each in text), "")
