"""Starts of a replay: of a run, and of an operator's command, which opens without a word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.faults.model.machine import apply
from tests.faults.model.opening import ACCEPT, DELETES, RETENTION_LOST, TOPIC
from tests.faults.model.reading import erasures, walk
from tests.faults.model.stage import FAR, Stage
from tests.faults.model.state import (
    AT_REST,
    CHANGE,
    DELETE,
    ERASURE,
    LOSS,
    RESET,
    RESUME,
    Entry,
    Other,
)
from tests.faults.model.steps import put
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

    def _ways(self) -> Iterator[tuple[str, int]]:
        """What a command that opens silently may have been asked to accept, and when it read.

        That is a version of the log. The likely ways come first.
        """
        written = self._written()
        options = [OPTIONS[written.kind]] if written is not None else self._possible()
        accepted = written.accepts if written is not None else 0
        said = int(self.line.facts["sequence"])
        first = max(accepted, self._version_of(said if self.line.step == "project" else said - 1))
        versions = range(max(first, self.newest), max(self.commits, default=self.newest) + 1)
        return ((option, version) for option in options for version in versions)

    def _open_silently(self, option: str, version: int) -> None:
        """Open a command: the log, or Kafka, must show what it accepts."""
        d = self.driver(self.line)
        self.advance(version)
        self.bury(self.line)
        if option == TOPIC:
            self._created_again()
        self._start(d, option)
        written = self._written()
        if written is not None and option == DELETES:
            self._accept_delete(d, written.accepts)
        if self.line.step == "plan" and self.state.drivers[d].pending:
            # Somebody has brought the offsets table up to date, and died before it could say so.
            self.take(("project", d, FAR))

    def _accept_delete(self, d: int, version: int) -> None:
        """The model accepts the first DELETE that no entry names; a command is told which."""
        log = self.state.table.log
        named = {each for _, each in erasures(log)}
        if version in named or log[version] != Other(DELETE):
            raise self.refused(f"version {version} is no DELETE that is to be accepted")
        self.state = put(self.state, d, self.state.drivers[d]._replace(accepts=version))

    def _version_of(self, sequence: int) -> int:
        """What a command names was in the log when it read that: a driver may have died since."""
        entries = [(each.version, each.entry) for each in self.commits.values() if each.entry]
        there = [version for version, entry in entries if int(entry["sequence"]) <= sequence]
        return max(there, default=self.newest)

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

    def _records_loss(self, d: int) -> bool:
        """Whether this run records a loss here; then retention has passed its position.

        It may be killed before it plans that.
        """
        plan = self._next_plan()
        if plan is None:
            return self._would(d, (), RETENTION_LOST)
        lost = plan.range_of(self.place) if plan.facts["kind"] == LOSS else None
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
