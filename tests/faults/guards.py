"""The product's guards, each of which can be switched off: then histories must go wrong.

A guard that can be removed without anybody noticing is either not needed or not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.protocol import commits as protocol
from rivermouth.protocol.accept_deletes import InEffect
from rivermouth.protocol.accept_deletes import _after as after_commit
from rivermouth.protocol.commits import CommitPlan, CommitRecord, Outcome, Recorded
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.history import rolls_back
from rivermouth.run import committer
from rivermouth.warehouse import ledger
from tests import doubles
from tests.doubles import CrashingOffsets, MemoryLanding, Offset, World

Patch = Callable[[pytest.MonkeyPatch], None]
"""Takes a guard away."""


def _off(*names: str, gives: Any = None) -> Patch:
    """These functions do nothing, whatever they are given."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        for each in names:
            patch.setattr(f"rivermouth.{each}", lambda *_, **__: gives)

    return patched


def _no_fencing(patch: pytest.MonkeyPatch) -> None:
    """Delta commits whatever it is given: as without txnAppId and txnVersion."""

    def commit(world: World, entry: Entry, rows: Any) -> None:
        entries = sum(1 for each in world.commits if each.txns)
        fresh = replace(entry, sequence=max(entry.sequence, entries + 1))
        real(world, fresh, rows)

    real = World.commit
    patch.setattr(World, "commit", commit)


def _no_read_back(patch: pytest.MonkeyPatch) -> None:
    """A write that returned has written."""

    def read_back(
        self: committer.Committer, plan: CommitPlan, fault: Exception | None
    ) -> tuple[Recorded, ...]:
        if fault is not None:
            raise self._at.writes.translate(fault)
        believed = Recorded((self.history.version or 0) + 1, 0, plan.empty_entry())
        self.history = replace(
            self.history,
            recorded=believed,
            sequence=plan.sequence,
            effective=plan.sequence,
        )
        return (believed,)

    patch.setattr(committer.Committer, "_read_back", read_back)


def _no_commit_id(patch: pytest.MonkeyPatch) -> None:
    """An entry with our sequence is taken for ours, whoever wrote it."""

    def classify(ours: CommitPlan, since: Sequence[CommitRecord]) -> Outcome:
        found = real(ours, since)
        mine = (Outcome.SUPERSEDED, Outcome.ALREADY_COMMITTED)
        return Outcome.COMMITTED if found in mine else found

    real = protocol.classify
    patch.setattr("rivermouth.run.committer.classify", classify)


def _only_the_newest_entry(patch: pytest.MonkeyPatch) -> None:
    """A start takes the newest entry at its word, whatever came between its base and itself."""

    def end(
        newest_first: Iterable[CommitRecord], pipeline: str, projected: int
    ) -> list[CommitRecord]:
        found = real(newest_first, pipeline, projected)
        entries = (n for n, each in enumerate(found) if protocol.app_id(pipeline) in each.txns)
        return found[max(entries, default=0) :]

    real = ledger.end_of_log
    patch.setattr("rivermouth.warehouse.ledger.end_of_log", end)


def _no_kept_sequence(patch: pytest.MonkeyPatch) -> None:
    """The offsets table is believed once log clean-up has taken the entries."""

    def newest(self: CrashingOffsets, pipeline: str) -> Recorded | None:
        found = real(self, pipeline)
        if found is None:
            return None
        return replace(found, entry=replace(found.entry, sequence=world_txn(self)))

    def world_txn(offsets: CrashingOffsets) -> int:
        return max(max(each.txns.values(), default=0) for each in offsets._world.commits)

    real = CrashingOffsets.newest
    patch.setattr(CrashingOffsets, "newest", newest)


def _no_projection_txn(patch: pytest.MonkeyPatch) -> None:
    """The offsets table is appended to without a look at what it holds."""

    def project(self: CrashingOffsets, entries: Sequence[Recorded]) -> None:
        self._crash.at("before projection")
        self._world.projected.extend(entries)
        self._crash.at("after projection")
        for each in entries:
            self._world.offsets.txns[each.entry.pipeline] = each.entry.sequence

    patch.setattr(CrashingOffsets, "project", project)


def _quarantine_behind(patch: pytest.MonkeyPatch) -> None:
    """Bad records are written after the commit that accounts for them."""

    def commit(self: MemoryLanding, rows: list[Offset], plan: CommitPlan) -> None:
        real(self, [each for each in rows if not doubles.is_bad(each)], plan)
        bad = [each for each in rows if doubles.is_bad(each)]
        self.world.quarantine += [(plan.commit, each) for each in bad]

    real = MemoryLanding._commit
    patch.setattr(MemoryLanding, "_commit", commit)


def _no_empty_entries(patch: pytest.MonkeyPatch) -> None:
    """A batch that changes no row commits nothing."""

    def commit(world: World, entry: Entry, rows: Any) -> None:
        if rows or not any(each.span for each in entry.ranges):
            real(world, entry, rows)

    real = World.commit
    patch.setattr(World, "commit", commit)


def _all_stand(
    since: Sequence[tuple[int, InEffect]], record: CommitRecord, pipeline: str, wanted: set[int]
) -> InEffect:
    """A RESTORE takes no DELETE back."""
    now = since[-1][1]
    return now if rolls_back(record) else after_commit(since, record, pipeline, wanted)


GUARDS: Mapping[str, Patch] = {
    "txn fencing (txnAppId, txnVersion)": _no_fencing,
    "read-back after the commit": _no_read_back,
    "commit id compared, not the sequence": _no_commit_id,
    "chain audited at every start": _off("protocol.assess.check_ledger"),
    "log read from the newest entry's base on": _only_the_newest_entry,
    "RESTORE, TRUNCATE and REPLACE followed": _off("protocol.log_replay.rolls_back", gives=False),
    "topic id and cluster id compared": _off(
        "run.ingest.check_source", "protocol.starts.check_source"
    ),
    "prior offset compared before the commit": _off("run.ingest.misplaced"),
    "retention and truncation noticed": _off("protocol.starts.check_partition"),
    "leader epochs compared": _off(
        "run.ingest.check_not_truncated", "protocol.assess.check_not_truncated"
    ),
    "leader epochs of what was restored": _off("protocol.history._epochs", gives={}),
    "a restored state's own source": _off("protocol.accept_rollback.check_source"),
    "an accepted topic starts over": _off("protocol.accept_changes._moves", gives=()),
    "an accepted DELETE is one that stands": lambda patch: patch.setattr(
        "rivermouth.protocol.accept_deletes._after", _all_stand
    ),
    "offsets table's sequence equals the txn": _no_kept_sequence,
    "offsets table's own txn": _no_projection_txn,
    "quarantine written ahead": _quarantine_behind,
    "an entry for every batch": _no_empty_entries,
}
