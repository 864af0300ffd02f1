"""The points that a commit by the driver passes: whoever acts there need not know in which room."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rivermouth.write.files import bad_records, table
from rivermouth.write.landings import files


def passing(monkeypatch: pytest.MonkeyPatch, reach: Callable[[str], object]) -> None:
    """``reach`` is called with the name of each such point of a batch of files."""
    for room in (files, table, bad_records):
        monkeypatch.setattr(room, "reach", reach)
