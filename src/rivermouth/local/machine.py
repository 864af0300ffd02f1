"""What this process may use of the machine: less than all of it in a container or a service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def memory_mb(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """The memory that this process may use; 0 where the system does not tell."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    v1 = groups / "memory" / "memory.limit_in_bytes"
    files = [v1, *(each / "memory.max" for each in _folders(groups, own))]
    limits = [int(text) for text in map(_text, files) if text.isdigit()]
    return min([physical, *limits]) >> 20


def cores(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """The cores that this process may use, at least one."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        found = os.cpu_count() or 1
    for each in _folders(groups, own):
        quota, _, period = _text(each / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            found = min(found, int(quota) // int(period))
    return max(1, found)


def _folders(groups: Path, own: Path) -> Iterator[Path]:
    """The control groups of this process, from its own up to the root."""
    lines = _text(own).splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::/")), "/")
    folder = groups / path.strip("/")
    yield folder
    yield from (each for each in folder.parents if each.is_relative_to(groups))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
