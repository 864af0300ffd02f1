"""Starts of a replay: of a run, and of an operator's command, which opens without a word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.faults.model.machine import apply
from tests.faults.model.opening import ACCEPT, DELETES, TOPIC
from tests.faults.model.reading import walk
from tests.faults.model.stage import FAR, Stage
from tests.faults.model.state import (
    AT_REST,
    CHANGE,
    ERASURE,
    LOSS,
    RESET,
    RESUME,
    Entry,
)
from tests.faults.model.trace import Line

OPTIONS = {RESUME: ACCEPT, RESET: ACCEPT, ERASURE: DELETES, CHANGE: TOPIC}
"""By the entry that it wrote: what an operator asked for."""


class Starting(Stage):
    """A stage on which drivers start."""

    # Starting, with a line that says so and without.

    def _start(self, d: int, option: str) -> None:
        if not self.take(("start", d, (option,) if option else ())):
            alive = self.alive_besides(d)
            locked = f"a start while {', '.join(alive)} lives and holds the lock"
            raise self.refused(locked if alive else "resume, but there is nothing to accept")

    def _opens_silently(self) -> bool:
        """Whether a command speaks for the first time: it opened without a line of its own."""
        if self.line.step not in ("plan", "project") or self.phase(self.line) not in AT_REST:
            return False
        plan = self.line if self.line.step == "plan" else self._next_plan()
        return plan is not None and plan.facts["kind"] == RESUME

    def _options(self) -> list[str]:
        """What a command that opens silently may have been asked to accept, the likely first."""
        written = self._written()
        return [OPTIONS[written.kind]] if written is not None else self._possible()

    def _open_silently(self, option: str) -> None:
        """Open a command: the log, or Kafka, must show what it accepts."""
        d, written = self.driver(self.line), self._written()
        accepted = written.accepts if written is not None else 0
        said = int(self.line.facts["sequence"])
        self._advance_to_entry(said if self.line.step == "project" else said - 1)
        while self.newest < accepted or not self._may(d, option):
            if not self.may_advance:
                break
            self.advance(self.newest + 1)
        self.bury(self.line, projected_silently=FAR if self.line.step == "plan" else 0)
        if option == TOPIC:
            self._created_again()
        self._start(d, option)

    def _advance_to_entry(self, sequence: int) -> None:
        """What a command names was in the log when it read that: a driver may have died since."""
        entries = [(each.version, each.entry) for each in self.commits.values() if each.entry]
        there = [version for version, entry in entries if int(entry["sequence"]) <= sequence]
        self.advance(max(there, default=self.newest))

    def _possible(self) -> list[str]:
        """What one may have accepted that never wrote it.

        Another topic begins elsewhere, or this partition came to it later: no plan names it then.
        """
        plan = self.line if self.line.step == "plan" else self._next_plan()
        start = plan.range_of(self.place) if plan is not None else None
        ledger = walk(self.state.table.log, self.state.table.first, True, True)
        stands = ledger.newest.until if ledger.newest is not None else None
        moves = stands is None or (start is not None and (start[0] != stands or not stands))
        return [ACCEPT, DELETES, *([TOPIC] if moves else [])]

    def _written(self) -> Entry | None:
        """The next commit of this driver, if it landed."""
        written = (each.facts["commit"] for each in self._mine() if each.step == "write")
        version = self.versions.get(next(written, None))
        entry = self.commits[version].as_entry(self.place) if version is not None else None
        return entry if entry is not None and entry.kind in OPTIONS else None

    def _may(self, d: int, option: str) -> bool:
        """Whether a start may be asked for so. Kafka may have created the topic again."""
        if option != TOPIC:
            return self._would(d, (option,), "")
        before = self.state
        self._created_again()
        may = self._would(d, (option,), "")
        self.state = before
        return may

    def _created_again(self) -> None:
        """The topic is another one, and begins where the next plan says."""
        self.take(("recreate", FAR))
        plan = self.line if self.line.step == "plan" else self._next_plan()
        start = plan.range_of(self.place) if plan is not None else None
        if start is not None and start[0]:
            self.take(("expire", start[0]))

    def _refuses_to_start(self, d: int, code: str) -> bool:
        """Whether a start halts with ``code`` at some version that may have been there."""
        if self.state.drivers[d].phase not in AT_REST:
            return False
        while not self._would(d, (), code):
            if not self.may_advance:
                return False
            self.advance(self.newest + 1)
        return True

    def _would(self, d: int, options: tuple[str, ...], code: str) -> bool:
        """Whether a start that gets the lock ends with this code; empty: it passes."""
        unlocked = replace(self.guards, lock=False)
        after = apply(self.state, ("start", d, options), unlocked)
        return after is not None and after.drivers[d].code == code

    def _records_loss(self) -> bool:
        """Whether this run records a loss here; then retention has passed its position."""
        plan = self._next_plan()
        lost = plan.range_of(self.place) if plan and plan.facts["kind"] == LOSS else None
        if lost is None or lost[0] == lost[1]:
            return False
        self.take(("expire", lost[1]))
        return True

    def _next_plan(self) -> Line | None:
        """The next plan of the driver that speaks, in the same run."""
        for each in self._mine():
            if each.step in ("open", "plan"):
                return each if each.step == "plan" else None
        return None

    def _mine(self) -> Iterator[Line]:
        """What the driver that speaks says later."""
        mine = (each for each in self.lines if each.process == self.line.process)
        return (each for each in mine if each.number > self.line.number)

    def _claim_commit(self, d: int) -> None:
        planned = self.state.drivers[d].planned
        self.claim("commit", planned and planned.commit, self.line.facts["commit"])
