"""What is looked at while a driver runs, every few milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Look = Callable[[], bool]
"""Whether what is looked for has happened."""


def new_file(pattern: str, *folders: Path) -> Look:
    """A file of this pattern appears in one of the folders."""

    def seen() -> set[Path]:
        return {file for folder in folders for file in folder.glob(pattern)}

    before = seen()
    return lambda: bool(seen() - before)


def once(happened: Look, act: Callable[[], object]) -> Look:
    """Acts when something has happened, until that gives something true; then it is done."""
    done = False

    def look() -> bool:
        nonlocal done
        done = done or (happened() and bool(act()))
        return done

    return look
