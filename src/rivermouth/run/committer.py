"""The committer: moves one pipeline's ledger on by commits, and by nothing else.

Write with an entry, read the log back, judge what became of the write, and only then say so.
What to commit is decided elsewhere (``protocol``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rivermouth import debug
from rivermouth.config import Pipeline
from rivermouth.debug import reach
from rivermouth.errors import (
    CommitConflict,
    CommitFailed,
    CommitUnknown,
    Passing,
    RivermouthError,
    Superseded,
)
from rivermouth.protocol.accept_rollback import nothing_left
from rivermouth.protocol.commits import (
    CommitPlan,
    CommitRecord,
    Outcome,
    Purpose,
    Recorded,
    classify,
)
from rivermouth.protocol.entry import Draft
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.snapshot import LedgerSnapshot, trimmed
from rivermouth.run.projecting import Projecting
from rivermouth.run.report import CommitReport, Listener
from rivermouth.run.steps import Steps
from rivermouth.warehouse.ports import Attempts, LedgerStore, LedgerWrites

_IN_A_ROW = 3
_AT_ONCE = 1_000
"""So many entries are counted in one query, and in memory together."""


@dataclass(frozen=True)
class Coordinates:
    """What a committer works on: the pipeline's table and its ledger, and who listens.

    ``projecting`` takes what was committed to the offsets table. ``attempts`` says how long a
    commit is tried again while commits of others are in the way. ``unsettled`` are the ids of
    commits of this run whose write ended with a fault: a store may still get one of them.
    """

    pipeline: Pipeline
    store: LedgerStore
    writes: LedgerWrites
    projecting: Projecting
    listener: Listener
    attempts: Attempts
    unsettled: set[str] = field(default_factory=set)


@dataclass
class _Ties:
    """Tries in a row that ended since others had committed.

    Some have no pause in between: what others did is read, and what was staged waits. A pause would
    only let them commit again.
    """

    number: int = 0

    def met(self, others: bool) -> None:
        """A try ended; whether others have committed."""
        self.number = self.number + 1 if others else 0

    def at_once(self) -> bool:
        """Whether the next try has no pause before it."""
        return self.number % _IN_A_ROW > 0


class Committer:
    """Commits for one pipeline, from ``history`` on. ``history`` is what was read back last."""

    def __init__(self, history: History, coordinates: Coordinates) -> None:
        self.history = history
        self._at = coordinates

    @staticmethod
    def opened(
        ledger: LedgerSnapshot,
        coordinates: Coordinates,
        to_project: Sequence[Recorded],
        **accepting: object,
    ) -> Committer:
        """A committer that goes on from a ledger that was read and assessed.

        The offsets table has got the entries ``to_project``. ``accepting``: what a command was told
        to accept, for the trace.
        """
        history = ledger.history
        debug.step(
            history.pipeline,
            "open",
            version=history.version,
            sequence=history.sequence,
            standing=history.effective,
            position=history.position.as_nested,
            projected=ledger.projected,
            **accepting,
        )
        committer = Committer(history, coordinates)
        committer._project(to_project)
        return committer

    def plan(self, purpose: Purpose, draft: Draft, *, beside: bool = False) -> CommitPlan:
        """The plan of a commit that follows on what was read back last.

        ``beside``: Kafka is asked while the batch is staged; until then nothing is committed.
        """
        facts = {"kind": purpose.value, "sequence": draft.sequence, "beside": beside}
        debug.step(self.history.pipeline, "plan", ranges=debug.listed(draft.ranges), **facts)
        return CommitPlan(purpose, draft, new_commit(), self.history.version)

    def record(self, plan: CommitPlan, check: Callable[[], object] = lambda: None) -> None:
        """Make a commit that brings no rows, see ``commit``."""
        from rivermouth.write.landing import Staged

        staged = Staged(self._at.writes.record)
        self.commit(plan, Steps(lambda *_: staged), check)

    def commit(
        self, plan: CommitPlan, steps: Steps, check: Callable[[], object] = lambda: None
    ) -> None:
        """Write, read back, classify, report, hand over for the offsets table.

        Raises unless the commit stands, and where it stands and another driver's has followed it.

        Where a commit of others is in the way, the same ranges are written again under the
        same sequence, for as long as the attempts last; never skipped, never widened. ``check``
        repeats the guards before each further attempt: much may happen in a pause, in which the
        table may also go on, which the next try then finds at once.
        """
        conflict: CommitConflict | None = None
        ties = _Ties()
        try:
            for _ in self._at.attempts.each(ties.at_once):
                if conflict is not None:
                    check()
                    plan = plan.again(new_commit(), self.history.version)
                try:
                    self._commit(plan, steps)
                    return
                except CommitConflict as met:
                    conflict = met
                ties.met(self.history.version != plan.base)
            if conflict is not None:
                conflict.passes = Passing.NO  # the time to try again is up
                raise conflict
        except Exception as fault:
            steps.give_up(plan, fault)
            raise
        finally:
            steps.close()

    def _project(self, entries: Sequence[Recorded]) -> None:
        """Write the rows of these entries into the offsets table, where they are not there yet.

        At once: what an opening finds missing is there before it goes on. Of a table that is
        written anew, some entries at a time: they may be those of years.
        """
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            self._at.store.offsets.project(self._at.writes.count(some))
            debug.step(self.history.pipeline, "project", sequence=some[-1].entry.sequence)

    def _commit(self, plan: CommitPlan, steps: Steps) -> None:
        began = time.monotonic()
        name, draft = self.history.pipeline, plan.draft
        reach("P3")
        ranges, position = debug.listed(draft.ranges), draft.position.as_nested
        facts = {"sequence": plan.sequence, "ranges": ranges, "position": position}
        debug.step(name, "write", commit=plan.commit, **facts)
        fault: Exception | None = None
        try:
            steps.write(plan)
        except Exception as raised:  # whatever it says, only the log knows what happened
            fault = raised
            if not isinstance(raised, CommitConflict):
                self._at.unsettled.add(plan.commit)
        said = None if fault is None else type(fault).__name__
        debug.step(name, "returned", commit=plan.commit, fault=said)
        reach("P6")
        recorded = self._read_back(plan, fault)
        reach("P7")
        try:
            # First: nothing that fails may come between the commit and what waits for it.
            steps.after(plan)
        except Exception:
            with suppress(Exception):  # the commit stands, so it is told all the same
                self._hand_over(recorded, plan, began)
            raise
        self._hand_over(recorded, plan, began)

    def _hand_over(self, recorded: Sequence[Recorded], plan: CommitPlan, began: float) -> None:
        counted = self._at.writes.count(recorded)
        ours = next(each for each in counted if each.entry.commit == plan.commit)
        self._at.listener.committed(_report(self._at.pipeline.name, ours, time.monotonic() - began))
        # Last: it raises what became of earlier entries.
        self._at.projecting.put(counted)
        if recorded[-1].entry.commit != plan.commit:
            raise self._superseded(recorded[-1].entry.sequence, plan)

    def _read_back(self, plan: CommitPlan, fault: Exception | None) -> tuple[Recorded, ...]:
        """Our entry as it stands in the log; raises what applies where it does not."""
        before = self.history
        since = self._since(plan, fault)
        outcome = classify(plan, since)
        self.history, recorded = replay(before, since)
        said = {"commit": plan.commit, "outcome": outcome.value, "version": self.history.version}
        debug.step(before.pipeline, "read_back", **said)
        if outcome is Outcome.SUPERSEDED or outcome is Outcome.ALREADY_COMMITTED:
            raise self._superseded(plan.sequence, plan)
        absent = outcome is Outcome.ABSENT
        # What an operator accepts is a fault until it is accepted; another one since then is not.
        accepted = absent and plan.draft.accepts is not None
        same = self.history.rolled_back_by == before.rolled_back_by
        if self.history.faults and not (accepted and same):
            raise self.history.faults[0]
        if accepted and not same:
            raise nothing_left(self.history)
        if absent:
            self._absent(plan, fault)
        self.history = self.history.shortened()
        return recorded

    def _since(self, plan: CommitPlan, fault: Exception | None) -> list[CommitRecord]:
        """The commits since the version that we knew of. Raises CommitUnknown."""
        known = self.history.version
        try:
            return list(self._at.store.log.commits_after(-1 if known is None else known))
        except RivermouthError as unreadable:
            found = str(unreadable)
            if fault is not None:  # it came first, and may well be why
                first = self._at.writes.translate(fault)
                found = f"{first.found or first.what}, and then {found}"
            raise CommitUnknown(
                "the log cannot be read back",
                where=self.history.where,
                found=found,
                passes=Passing.NO if unreadable.passes is Passing.NO else None,
            ) from (fault or unreadable)

    def _absent(self, plan: CommitPlan, fault: Exception | None) -> None:
        """Raise why the commit of the plan is not in the log."""
        history = self.history
        if isinstance(fault, RivermouthError):  # it says what it is about
            raise fault
        if fault is not None:
            raise self._at.writes.translate(fault) from fault
        if history.first and history.recorded is None:
            # The first commit after clean-up: Delta skipped it, so the txn is not below it.
            raise trimmed(history.where, f"entry {plan.sequence} or later", history.sequence)
        raise CommitFailed("Delta returned without a commit", where=history.where)

    def _superseded(self, sequence: int, plan: CommitPlan) -> RivermouthError:
        """Another entry stands: another driver's, or one of this run that came late."""
        newest = self.history.newest
        if newest is not None and newest.commit in self._at.unsettled:
            what, found = "an earlier try came late, and stands now", f"commit {newest.commit}"
            return CommitUnknown(what, where=self.history.where, found=found, passes=Passing.YES)
        return Superseded(
            f"entry {sequence} is another driver's",
            where=self.history.where,
            expected=f"commit {plan.commit}",
            found=f"commit {newest.commit if newest else None}",
        )


def new_commit() -> str:
    """A commit id that nothing else has."""
    return str(uuid.uuid4())


def _report(pipeline: str, ours: Recorded, seconds: float) -> CommitReport:
    entry = ours.entry
    return CommitReport(
        pipeline=pipeline,
        sequence=entry.sequence,
        table_version=ours.version,
        ranges=entry.ranges,
        rows=entry.rows or (),
        position=entry.position,
        seconds=seconds,
    )
