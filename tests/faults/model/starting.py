"""Starts of a replay: of a run, and of an operator's command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rivermouth.protocol.entry import accepted_changes
from tests.faults.model.machine import apply
from tests.faults.model.opening import ACCEPT, DELETES, RETENTION_LOST, TOPIC
from tests.faults.model.reading import erasures, truth
from tests.faults.model.stage import FAR, Stage
from tests.faults.model.state import AT_REST, CHANGE, ERASURE, LOSS, RESET, RESUME, put
from tests.faults.model.trace import Line

OPTIONS = {"restore": ACCEPT, "reset": ACCEPT, "deletes": DELETES}
OWED = {"restore": RESUME, "reset": RESET, "deletes": ERASURE}
"""What a command is told to accept, and the entry that it writes; all else is a change."""


class Starting(Stage):
    """A stage on which drivers start."""

    def _start(self, d: int, option: str) -> None:
        if not self.take(("start", d, (option,) if option else ())):
            alive = self.alive_besides(d)
            locked = f"a start while {', '.join(alive)} lives and holds the lock"
            raise self.refused(
                locked if alive else f"{self.line.step}, but there is nothing to accept"
            )

    def _start_command(self, d: int) -> None:
        """Start a command that says what it was told to accept."""
        accept = str(self.line.facts["accept"])
        if accept not in OPTIONS and not accepted_changes(accept):
            raise self.refused(
                f"open says that {accept!r} is to be accepted; there is no such thing"
            )
        option = OPTIONS.get(accept, TOPIC)
        if option == TOPIC:
            self._created_again()
        self._start(d, option)
        owes = self.state.drivers[d].owes
        if owes != OWED.get(accept, CHANGE):
            raise self.refused(f"open says that {accept} is to be accepted; it is {owes}")
        if option == DELETES:
            self._accept_delete(d, int(min(self.line.facts["versions"])))

    def _accept_delete(self, d: int, version: int) -> None:
        """The model accepts the first DELETE that no entry names; a command is told which."""
        log = self.state.table.log
        named = {each for _, each in erasures(log)}
        stands = {each for _, _, each in truth(log).deletes}
        if version in named or version not in stands:
            raise self.refused(f"version {version} is no DELETE that is to be accepted")
        self.state = put(self.state, d, self.state.drivers[d]._replace(accepts=version))

    def _created_again(self) -> None:
        """The topic is another one, and begins where the next plan says."""
        self.take(("recreate", FAR))
        plan = self._next_plan()
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
        return (each for each in mine if each.turn > self.line.turn)

    def _claim_commit(self, d: int) -> None:
        planned = self.state.drivers[d].planned
        self.claim("commit", planned and planned.commit, self.line.facts["commit"])
