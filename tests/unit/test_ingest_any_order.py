"""Whatever happens, in whatever order: every offset takes effect exactly once, or it halts.

Two drivers of one pipeline, each killed or failed at any step, batches of any size, empty
ones, partitions added; then one that nothing disturbs, which must find everything right.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from rivermouth.chain import Chain
from rivermouth.errors import CommitError, Halt
from rivermouth.offsets import Position
from tests.builders import PIPELINE, place
from tests.doubles import STEPS, Driver, Killed, World, until_done

pytestmark = pytest.mark.unit

CRASHES = st.sampled_from(["", "", "", "write failed", "log unreadable", *STEPS])
DRIVERS = st.integers(0, 1)


class AnyOrder(RuleBasedStateMachine):
    """A topic, a table, and up to two living drivers that know nothing of each other."""

    partitions = Bundle("partitions")

    def __init__(self) -> None:
        super().__init__()
        self.world = World(ends={place(0): 0})
        self.living: dict[int, Driver] = {}

    @rule(target=partitions)
    def a_partition_is_added(self) -> int:
        number = len(self.world.ends)
        self.world.ends[place(number)] = 0
        return number

    @rule(by=st.integers(1, 9))
    def records_arrive(self, by: int) -> None:
        self.world.ends[place(0)] += by

    @rule(partition=partitions, by=st.integers(1, 9))
    def records_arrive_elsewhere(self, partition: int, by: int) -> None:
        self.world.ends[place(partition)] += by

    @rule(number=DRIVERS, crash=CRASHES)
    def a_driver_starts(self, number: int, crash: str) -> None:
        driver = Driver(self.world)
        self.living.pop(number, None)
        before = len(self.world.commits)
        try:
            driver.open(crash)
        except (Killed, CommitError):
            return
        except Halt:
            assert len(self.world.commits) == before, "a halt comes before a write"
            raise AssertionError("nothing gave reason to halt a start") from None
        self.living[number] = driver

    @rule(number=DRIVERS, limit=st.integers(0, 6), crash=CRASHES)
    def a_driver_works(self, number: int, limit: int, crash: str) -> None:
        driver = self.living.get(number)
        if driver is None:
            return
        before = len(self.world.commits)
        try:
            driver.batch(limit, crash)
        except (Killed, CommitError):
            del self.living[number]
        except Halt:
            assert len(self.world.commits) == before, "a halt comes before a write"
            assert len(self.living) > 1 or self._was_overtaken(driver)
            del self.living[number]

    def _was_overtaken(self, driver: Driver) -> bool:
        mine = {each.sequence for each in driver.heard.commits}
        return self._chain().sequence > max(mine, default=0)

    def _chain(self) -> Chain:
        chain = Chain(PIPELINE, "")
        chain.extend(self.world.commits)
        return chain

    @invariant()
    def the_ledger_is_whole_and_says_exactly_what_is_there(self) -> None:
        chain = self._chain()
        assert chain.faults == ()
        recorded = [(each, n) for each, end in chain.position.offsets.items() for n in range(end)]
        assert self.world.applied() == recorded

    @invariant()
    def the_offsets_table_follows_without_gap_or_repetition(self) -> None:
        sequences = [each.entry.sequence for each in self.world.projected]
        assert sequences == list(range(1, len(sequences) + 1))
        assert len(sequences) <= self._chain().sequence

    def teardown(self) -> None:
        until_done(self.world)
        chain = self._chain()
        assert chain.position == Position(self.world.ends)
        assert len(self.world.projected) == chain.sequence
        self.the_ledger_is_whole_and_says_exactly_what_is_there()


def test_every_offset_takes_effect_exactly_once_whatever_happens_in_whatever_order() -> None:
    many = settings(max_examples=150, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(AnyOrder, settings=many)
