"""The upkeep of the offsets table by a run: how often, and that it fails nobody."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from rivermouth.run.offsets_upkeep import OffsetsUpkeep
from rivermouth.warehouse.memory.offsets import MemoryOffsets

pytestmark = pytest.mark.unit


@dataclass
class Noting(MemoryOffsets):
    """Notes what is asked of it; ``fails`` names what it cannot do."""

    at: int = 0
    fails: str = ""
    did: list[str] = field(default_factory=list)

    def version(self) -> int:
        self._fail("version")
        return self.at

    def compact(self) -> None:
        self._fail("compact")
        self.did.append(f"compact {self.at}")

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        self._fail("forget")
        self.did.append(" ".join(["forget", str(before_ms), *pipelines]))

    def _fail(self, what: str) -> None:
        if self.fails == what:
            raise OSError(what)


@pytest.mark.parametrize(
    ("versions", "done"),
    [
        (range(1, 31), ["compact 10", "compact 20", "compact 30"]),
        ([9, 12, 13, 25], ["compact 12", "compact 25"]),
        ([10], ["compact 10"]),
        ([11, 12], []),
        ([19, 3, 4], []),
    ],
    ids=["each version", "others write too", "a short run", "between", "made anew"],
)
def test_it_is_made_compact_every_so_many_commits_whoever_makes_them(
    versions: range | list[int], done: list[str]
) -> None:
    offsets = Noting()
    upkeep = OffsetsUpkeep(offsets, every=10)
    for offsets.at in versions:
        upkeep()
    assert offsets.did == done


def test_rows_that_are_too_old_are_deleted_before() -> None:
    offsets = Noting(at=10)
    OffsetsUpkeep(offsets, ["a", "b"], timedelta(days=2), 10, lambda: 3 * 86400.0)()
    assert offsets.did == ["forget 86400000 a b", "compact 10"]


@pytest.mark.parametrize(
    ("fails", "done"), [("version", []), ("forget", ["compact 10"]), ("compact", ["forget 0"])]
)
def test_what_fails_stops_nobody(fails: str, done: list[str]) -> None:
    offsets = Noting(at=10, fails=fails)
    OffsetsUpkeep(offsets, [], timedelta(days=1), 10, lambda: 86400.0)()
    assert offsets.did == done
