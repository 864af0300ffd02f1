"""Anything in any order, over the real core and the edges in memory: what a trace may have to tell.

One driver at a time is killed at any step, and so are the commands of an operator. Between them
others delete rows, take the table back, empty or compact it; partitions are added, retention passes
records, and the topic is created again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from rivermouth.config import OnDataLoss
from rivermouth.errors import Halt
from rivermouth.protocol.offsets import OffsetRange
from tests.builders import place
from tests.doubles import STEPS, accept_in
from tests.faults.model.recorder import Recorder

KILLED = 0.6
"""How often a process is killed at one of its steps."""


class Roaming:
    """A world in which ``happen`` lets one thing happen."""

    def __init__(self, recorder: Recorder, dice: random.Random) -> None:
        self.recorder, self.world, self.dice = recorder, recorder.world, dice
        self._topics = self._commands = 0

    def happen(self) -> None:
        """One thing, and then a life of a driver."""
        happenings: list[Callable[[], None]] = [
            self._deleted,
            self._restored,
            self.world.truncate,
            self._created_again,
            self._partition_added,
            self._lost,
            partial(self.world.did, "OPTIMIZE"),
        ]
        self.dice.choice(happenings)()
        for each in self.world.ends:
            self.world.ends[each] += self.dice.randrange(6)
        for _ in range(self.dice.randrange(1, 4)):
            self.driver_lives()

    def driver_lives(self) -> None:
        """A run, up to a kill or to its end; where it halts, somebody accepts why."""
        late = self.dice.random() < 0.5
        name, driver = self.recorder.driver(late=late, on_data_loss=OnDataLoss.RECORD)
        batch = partial(driver.batch, self.dice.randrange(6))
        project = partial(driver.project, self.dice.randrange(1, 3))
        steps: list[Callable[[str], object]] = [driver.open]
        steps += self.dice.choices([batch, project] if late else [batch], k=5)
        killed_in = self.dice.choice(steps) if self.dice.random() < KILLED else None
        remedies: list[str] = []
        for each in steps:
            crash = self.dice.choice(STEPS) if each is killed_in else ""
            if not self.recorder.did(name, partial(self._noted, partial(each, crash), remedies)):
                break
        else:
            self.recorder.did(name, driver.project)
            self.recorder.closed(name)
        for remedy in remedies:
            self._command(partial(self._resume, remedy.partition(" --accept ")[2]))

    def _noted(self, call: Callable[[], object], remedies: list[str]) -> None:
        """Note what a halt says that can be done."""
        try:
            call()
        except Halt as halt:
            remedies.append(halt.remedy)
            raise

    def _command(self, call: Callable[[str], object]) -> None:
        """Commands, each in its own process, until one was not killed."""
        steps = [self.dice.choice(STEPS) for _ in range(3) if self.dice.random() < KILLED]
        for step in (*steps, ""):
            self._commands += 1
            self.recorder.did(f"command-{self._commands}", partial(call, step), run=False)

    def _resume(self, accept: str, step: str) -> None:
        _, operator = self.recorder.driver(on_data_loss=OnDataLoss.RECORD)
        operator.crash.step = step
        operator.ingest.resume(accept)

    def _deleted(self) -> None:
        """Others delete a row, and an operator accepts that, at once or never."""
        if not self.world.rows:
            return
        where, offset = self.world.rows.pop(self.dice.randrange(len(self.world.rows)))[1]
        self.world.did("DELETE", predicate="some")
        version = len(self.world.commits) - 1
        rows = [OffsetRange(where, offset, offset + 1)]
        if self.dice.random() < 0.8:
            self._command(lambda step: accept_in(self.world, version, rows=rows, crash=step))

    def _restored(self) -> None:
        if self.world.commits:
            self.world.restore(self.dice.randrange(len(self.world.commits)))

    def _created_again(self) -> None:
        self._topics += 1
        self.world.topics = dict.fromkeys(self.world.topics, f"again-{self._topics}")
        self.world.ends = {each: self.dice.randrange(6) for each in self.world.ends}
        self.world.low = {}

    def _lost(self) -> None:
        """Retention passes some records, read or not."""
        for each, end in self.world.ends.items():
            low = self.world.low.get(each, 0)
            self.world.low[each] = self.dice.randint(low, end)

    def _partition_added(self) -> None:
        self.world.ends[place(len(self.world.ends))] = self.dice.choice([0, 3])
