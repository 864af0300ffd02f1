"""A disk of a test's own, to be filled up or made read-only; needs the right to mount."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = 4096
_SIZE = 1 << 20


@dataclass(frozen=True)
class SmallDisk:
    """A disk in memory of one megabyte, mounted at ``path``."""

    path: Path

    def leave(self, pages: int) -> None:
        """Fill the disk until so many pages are free."""
        self.clear()
        free = shutil.disk_usage(self.path).free
        (self.path / "ballast").write_bytes(bytes(free - pages * PAGE))

    def clear(self) -> None:
        """Take away what ``leave`` put there."""
        (self.path / "ballast").unlink(missing_ok=True)

    def make_read_only(self, yes: bool) -> None:
        _mount("-o", f"remount,{'ro' if yes else 'rw'}", str(self.path))


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mount one at ``path``; skips the test where nobody may."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a disk to fill needs the right to mount one")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
