"""Whatever happens, in whatever order, over the real core: a state machine for Hypothesis.

Two drivers of one pipeline, each killed or failed at any step, which project at once or later;
batches of any size, empty ones; partitions added; elections, clean and unclean; RESTORE, TRUNCATE
and OPTIMIZE by others; rows deleted on purpose; the topic created again; log clean-up; retention
that passes unread records; an operator who accepts what happened, a cut log or another topic among
it. At every moment the table holds what its standing entries say, once, and there is a way on.

``python -m tests.faults.any_order [--crashes 10000] [--seed S]`` counts crashes per minute.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from hypothesis import Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rivermouth.config import OnDataLoss, Start
from rivermouth.errors import (
    CommitError,
    Halt,
    LedgerBroken,
    LogTruncated,
    LogUnreadable,
    OffsetsTableAhead,
    ResumeRefused,
    RivermouthError,
    TableUndone,
    TopicRecreated,
)
from rivermouth.protocol.accept_rollback import resume
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Deleted, Entry
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.ledger import audit_ledger, read_ledger
from rivermouth.warehouse.ports import LedgerStore
from tests.builders import PIPELINE, place
from tests.doubles import (
    STEPS,
    Driver,
    Killed,
    MemoryKafka,
    Offset,
    World,
    a_pipeline,
    accept_in,
)
from tests.faults.seeded import command
from tests.memory import MemoryLog

DEATHS = st.sampled_from(["write failed", "log unreadable", *STEPS])
CRASHES = st.just("") | DEATHS
DRIVERS = st.integers(0, 1)
SETTINGS = a_pipeline(on_data_loss=OnDataLoss.RECORD)
FROM_THE_END = a_pipeline(start=Start(edge="latest"), on_data_loss=OnDataLoss.RECORD)

crashes: Counter[str] = Counter()
"""How often a driver has died at each step, in all machines of this process."""


class AnyOrder(RuleBasedStateMachine):
    """A topic, a table, and up to two living drivers that know nothing of each other."""

    partitions = Bundle("partitions")

    def __init__(self) -> None:
        super().__init__()
        self.world = World(ends={place(0): 0})
        self.world.did("SET TBLPROPERTIES")
        self.living: dict[int, Driver] = {}
        self._walked = History(PIPELINE, "")
        self._recorded: list[Recorded] = []
        self.over = False
        """Whether every driver must halt from now on."""
        self.reached: dict[int, tuple[int, int | None]] = {}
        """How often the topic had been created again when an entry was written, and the leader
        epoch in which its log reached to the position; None: not known.
        """
        self.topics = 0
        """How often the topic was created again."""
        self.erased: set[Offset] = set()
        """The records whose rows others have deleted on purpose at any time."""

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

    @rule(share=st.floats(0, 1))
    def retention_passes(self, share: float) -> None:
        self.living.clear()  # Spark's own reader would fail; starts are what we look at
        low, end = self.world.low.get(place(0), 0), self.world.ends[place(0)]
        self.world.low[place(0)] = low + int(share * (end - low))

    @precondition(lambda self: self._history().sequence > 0)
    @rule(records=st.integers(0, 60))
    def the_topic_is_created_again(self, records: int) -> None:
        """From now on every driver must halt, however long the topic is, until it is accepted or
        the table starts over.
        """
        self._create_again(records)

    @rule()
    def batches_are_looked_at_beside_their_reading_or_no_longer(self) -> None:
        self.world.staging_reads = not self.world.staging_reads

    @rule()
    def a_leader_changes(self) -> None:
        self.world.epochs[place(0)] = self.world.epochs.get(place(0), 0) + 1

    @precondition(lambda self: self._newest_is_readable())
    @rule(share=st.floats(0, 1), grown=st.integers(0, 30))
    def an_unclean_election_cuts_the_log(self, share: float, grown: int) -> None:
        """Records are lost and others take their offsets; halt where some had been read."""
        self._entries()
        low = self.world.low.get(place(0), 0)
        end = low + int(share * (self.world.ends[place(0)] - low))
        self.world.cut(place(0), end, grown)

    @precondition(lambda self: self._newest_is_readable())
    @rule(back=st.floats(0, 1), share=st.floats(0, 1), grown=st.integers(0, 30), crash=CRASHES)
    def the_log_is_cut_and_others_restore(
        self, back: float, share: float, grown: int, crash: str
    ) -> None:
        self.an_unclean_election_cuts_the_log(share, grown)
        self.others_restore(back)
        self.an_operator_accepts(crash)
        self.a_driver_starts(0, "")

    @rule(number=DRIVERS, crash=CRASHES)
    def a_late_driver_starts(self, number: int, crash: str) -> None:
        """It goes on before what it committed is in the offsets table, as a run does."""
        self.a_driver_starts(number, crash, late=True)

    @rule(number=DRIVERS, entries=st.integers(1, 4), crash=CRASHES)
    def what_a_driver_handed_over_is_projected(self, number: int, entries: int, crash: str) -> None:
        driver = self.living.get(number)
        if driver is None:
            return
        try:
            driver.project(entries, crash)
        except Killed:
            crashes[crash] += 1
            del self.living[number]

    @rule(number=DRIVERS, crash=CRASHES)
    def a_driver_starts(self, number: int, crash: str, *, late: bool = False) -> None:
        driver = Driver(self.world, SETTINGS, late=late)
        self.living.pop(number, None)
        before = len(self.world.commits)
        try:
            driver.open(crash)
        except (Killed, CommitError):
            crashes[crash] += 1
            return
        except Halt as halt:
            assert len(self.world.commits) == before, "a halt comes before a write"
            unsure = self.world.log.first_version > 0 and "nobody knows" in halt.found
            reason = unsure or self._may_halt() or self._history().faults
            assert reason, "nothing gave reason to halt a start"
            return
        assert not self._must_halt(), "it went on where it must halt"
        assert not self._history().faults, "it went on over what others undid"
        self.living[number] = driver

    @rule(number=DRIVERS, crash=CRASHES)
    def a_driver_starts_after_a_long_silence(self, number: int, crash: str) -> None:
        """It writes the newest entry again, before log clean-up takes it."""
        self.world.now = 11 * 86400.0
        self.a_driver_starts(number, crash)
        self.world.now = 0.0

    @rule(number=DRIVERS, limit=st.integers(0, 6), crash=CRASHES)
    def a_driver_works(self, number: int, limit: int, crash: str) -> None:
        driver = self.living.get(number)
        if driver is None:
            return
        try:
            driver.batch(limit, crash)
        except (Killed, CommitError):
            crashes[crash] += 1
            del self.living[number]
        except Halt:
            assert self._may_halt() or self._history().faults or self._was_overtaken(driver)
            del self.living[number]
        else:
            assert not self._must_halt() or limit == 0, "it went on where it must halt"

    @rule(number=DRIVERS, by=st.integers(-5, 5).filter(bool))
    def a_driver_is_offered_what_does_not_follow(self, number: int, by: int) -> None:
        """As after a planner's mistake: a range that starts before or after the position."""
        driver = self.living.pop(number, None)
        stands = driver.stands.get(place(0)) if driver else None
        if driver is None or stands is None or stands + by < 0:
            return
        offered = OffsetRange(place(0), stands + by, stands + by + 7)
        with suppress(Halt):
            driver.offer((offered,), driver.stands)
            raise AssertionError(f"{offered} does not follow {stands} and was written")

    @rule(lives=st.lists(st.tuples(st.booleans(), st.integers(0, 6), DEATHS), max_size=12))
    def drivers_die_one_after_another(self, lives: list[tuple[bool, int, str]]) -> None:
        for early, limit, death in lives:
            self.world.ends[place(0)] += 1
            self.a_driver_starts(0, death if early else "")
            self.a_driver_works(0, limit, death)

    @rule(limits=st.lists(st.tuples(DRIVERS, st.integers(0, 6)), max_size=6))
    def two_drivers_work_at_once(self, limits: list[tuple[int, int]]) -> None:
        self.a_driver_starts(0, "")
        self.a_driver_starts(1, "")
        for number, limit in limits:
            self.world.ends[place(0)] += 2
            self.a_driver_works(number, limit, "")

    @rule()
    def others_optimize(self) -> None:
        self.world.did("OPTIMIZE")

    @rule(share=st.floats(0, 1))
    def others_restore(self, share: float) -> None:
        first, last = self.world.log.first_version, len(self.world.commits) - 1
        self.world.restore(first + int(share * (last - first)))

    @rule()
    def others_truncate(self) -> None:
        self.world.truncate()

    @precondition(lambda self: not self._history().faults and not self._must_halt())
    @rule(death=CRASHES)
    def log_clean_up(self, death: str) -> None:
        """Takes every entry; without what a dead driver did not project, there is no way on."""
        self.drivers_die_one_after_another([(False, 3, death)])
        if self._history().faults:
            return
        self.over = self.over or not self._projected_up_to_date()
        self.world.did("OPTIMIZE")
        self.world.log.first_version = len(self.world.commits) - 1
        self.living.clear()

    @rule(share=st.floats(0, 1))
    def log_clean_up_of_a_part(self, share: float) -> None:
        """The newest entry is left, and what came after it.

        So are those that wait to be projected: they were committed a moment before.
        """
        entries, first = self._entries(), self.world.log.first_version
        known = self.world.offsets.txns.get(PIPELINE, 0)
        left = [each for each in entries if each.entry.sequence > known] or entries[-1:]
        newest = left[0].version if left else 0
        self.world.log.first_version += int(share * max(0, newest - first))

    @rule(crash=CRASHES)
    def an_operator_accepts(self, crash: str) -> None:
        try:
            self._accept(crash)
        except (Killed, CommitError):
            crashes[crash] += 1
        except (Halt, ResumeRefused):
            assert self._may_halt() or self._history().faults

    @precondition(lambda self: bool(self.world.rows))
    @rule(share=st.floats(0, 1, exclude_max=True), crash=CRASHES)
    def others_delete_a_row_and_an_operator_accepts_that(self, share: float, crash: str) -> None:
        gone = self.world.rows.pop(int(share * len(self.world.rows)))
        self.world.did("DELETE", predicate="some")
        self.erased.add(gone[1])
        where, offset = gone[1]
        rows = [OffsetRange(where, offset, offset + 1)]
        before = len(self.world.commits)
        try:
            accept_in(self.world, before - 1, rows=rows, crash=crash)
        except (Killed, CommitError, LogUnreadable):
            crashes[crash] += 1
        except ResumeRefused:  # once clean-up has taken what was accepted, see the design's limits
            assert self.topics or self.world.cuts
            assert self.world.log.first_version > 0
        except Halt as halt:
            assert len(self.world.commits) == before, "a halt comes before a write"
            unsure = self.world.log.first_version > 0 and "nobody knows" in halt.found
            assert unsure or self.over or self._history().faults
        else:
            assert self._history().newest == self._entries()[-1].entry
            assert self._entries()[-1].entry.deletes == (Deleted(before - 1, tuple(rows)),)

    @precondition(lambda self: bool(self.world.rows) and self._goes_on())
    @rule(share=st.floats(0, 1, exclude_max=True))
    def a_delete_that_was_taken_back_is_not_accepted(self, share: float) -> None:
        place_, offset = self.world.rows[int(share * len(self.world.rows))][1]
        before = len(self.world.commits) - 1
        self.world.did("DELETE", predicate="some")
        self.world.restore(before)
        with suppress(ResumeRefused):
            accept_in(self.world, before + 1, rows=[OffsetRange(place_, offset, offset + 1)])
            raise AssertionError("its row is there")

    @precondition(lambda self: self._goes_on())
    @rule(records=st.integers(0, 30), crash=CRASHES)
    def the_topic_is_created_again_and_an_operator_accepts_that(
        self, records: int, crash: str
    ) -> None:
        self.living.clear()
        self._create_again(records)
        before = len(self.world.commits)
        for step in (crash, ""):
            with suppress(TopicRecreated, Killed, CommitError):
                Driver(self.world, SETTINGS).open()
                raise AssertionError("it went on with another topic")
            assert len(self.world.commits) == before, "a halt comes before a write"
            driver = Driver(self.world, SETTINGS)
            driver.crash.step = step
            try:
                driver.ingest.resume("topic")
            except (Killed, CommitError, LogUnreadable):
                crashes[step] += 1
            if len(self.world.commits) > before:
                break
        newest = self._history().newest
        assert newest is not None
        assert newest.changes is not None
        with suppress(ResumeRefused):
            Driver(self.world, SETTINGS).ingest.resume("topic")
            raise AssertionError("it was accepted twice")

    def _create_again(self, records: int) -> None:
        self._entries()
        self.topics += 1
        self.world.topics = dict.fromkeys(self.world.topics, f"again-{self.topics}")
        self.world.ends = dict.fromkeys(self.world.ends, records)
        self.world.low, self.world.cuts, self.world.epochs = {}, [], {}

    def _goes_on(self) -> bool:
        """Whether nothing stands against a start, and the log shows it all."""
        history = self._history()
        known = history.newest is not None and self._newest_is_readable()
        return known and not history.faults and not self._must_halt()

    def _accept(self, crash: str = "") -> None:
        """Do what the message of a start says, if it says to accept anything."""
        try:
            Driver(self.world, SETTINGS).open()
        except (TableUndone, LogTruncated, TopicRecreated) as halt:
            accept = halt.remedy.partition(" --accept ")[2]
            if not accept:
                return
            driver = Driver(self.world, SETTINGS)
            driver.crash.step = crash
            driver.ingest.resume(accept)

    def _must_halt(self) -> bool:
        return self.over or bool(self._is_other())

    def _may_halt(self) -> bool:
        return self.over or self._is_other() is not False

    def _is_other(self) -> bool | None:
        """Whether the topic was created again, or its log cut below the position, since it was
        reached; None: not known.
        """
        entries = self._entries()
        if not entries:
            return False
        topic, epoch = self.reached[entries[-1].entry.sequence]
        position = entries[-1].entry.position.get(place(0)) or 0
        cut = [was for _, was, end in self.world.cuts if end < position]
        if topic != self.topics:
            return True
        return None if epoch is None and cut else any(was >= (epoch or 0) for was in cut)

    def _source_of(self, recorded: Recorded) -> tuple[int, int | None]:
        """The present topic and epoch; of what a RESTORE left the epoch of the entry that is in
        effect again, which is not known where log clean-up has taken that entry.
        """
        entry = recorded.entry
        if entry.deletes:
            return self.reached[entry.sequence - 1]  # to accept them Kafka is not asked
        if entry.accepts is None or entry.accepts.kind != "restore":
            return self.topics, self.world.epochs.get(place(0), 0)
        before = {each.entry.sequence: each for each in self._recorded}
        standing = entry.accepts.standing
        while standing in before and before[standing].entry.deletes:
            standing -= 1  # it has no epoch of its own
        first = self.world.log.first_version
        if standing not in before or before[standing].version < first:
            return self.topics, None
        topic, epoch = self.reached[entry.accepts.standing]
        assert topic == self.topics, "it goes on from what was read of another topic"
        return topic, epoch

    def _newest_is_readable(self) -> bool:
        """Leader epochs are kept in the log alone, not in the offsets table."""
        entries = [each for each in self._entries() if not each.entry.deletes]
        return not entries or entries[-1].version >= self.world.log.first_version

    def _projected_up_to_date(self) -> bool:
        return self.world.offsets.txns.get(PIPELINE, 0) == self._history().sequence

    def _was_overtaken(self, driver: Driver) -> bool:
        mine = {each.sequence for each in driver.heard.commits}
        return self._history().sequence > max(mine, default=0)

    def _history(self) -> History:
        """The whole log as it is, replayed on over what is new; no part is cleaned up for us."""
        version = self._walked.version
        new = self.world.commits[0 if version is None else version + 1 :]
        self._walked, recorded = replay(self._walked, new)
        for each in recorded:
            self._recorded.append(each)
            self.reached[each.entry.sequence] = self._source_of(each)
        return self._walked

    def _entries(self) -> list[Recorded]:
        self._history()
        return self._recorded

    def _standing(self) -> list[Entry]:
        return [each.entry for each in self._entries() if each.entry.commit in self.world.stands]

    @invariant()
    def the_table_holds_what_its_standing_entries_say(self) -> None:
        said: list[Offset] = []
        for entry in self._standing():
            for each in set(entry.ranges) - set(entry.lost):
                said += [
                    (each.topic_partition, n) for n in range(each.from_offset, each.until_offset)
                ]
        there, due = Counter(self.world.applied()), Counter(said)
        assert not there - due
        assert {*(due - there)} <= self.erased
        named = Counter(
            (run.topic_partition, run.from_offset)
            for entry in self._standing()
            for each in entry.deletes
            for run in each.rows
        )
        # Where an offset has meant several records, one of their rows may still be there.
        assert not (there + named) - due, "a row that is named as deleted is there"

    @invariant()
    def what_a_whole_ledger_says_holds_together(self) -> None:
        history = self._history()
        if history.faults:
            return
        reached = Position()
        accepted: list[tuple[str, int]] = []
        for entry in self._standing():
            if _starts_over(entry):
                reached, accepted = Position(), []
            if entry.changes is not None:
                reached = entry.changes.applied(reached)
                accepted += [(each.value, entry.sequence) for each in entry.changes.kinds]
            reached = reached.advance(entry.ranges)
            # Log clean-up may have taken all entries that told of earlier ones.
            trimmed = self.world.log.first_version > 0
            assert trimmed or entry.accepted == tuple(accepted)
        assert all(reached.get(each) in (None, at) for each, at in history.position.offsets.items())

    @invariant()
    def nothing_breaks_the_ledger_but_what_others_undo(self) -> None:
        history = self._history()
        assert len(history.faults) == (1 if history.rolled_back_by else 0), history.faults

    @invariant()
    def the_end_of_the_log_tells_what_the_whole_log_tells(self) -> None:
        store = LedgerStore(MemoryLog(self.world.log), self.world.offsets)
        recent, whole = (read(store, SETTINGS) for read in (read_ledger, audit_ledger))
        assert [*map(str, recent.history.faults)] == [*map(str, whole.history.faults)]
        assert recent.history.effective == whole.history.effective
        assert (recent.newest, recent.forgotten) == (whole.newest, whole.forgotten)
        assert self._accepting(recent) == self._accepting(whole)

    def _accepting(self, ledger: LedgerSnapshot) -> Position | str:
        """Where a RESTORE would be accepted to go on, were ``start: latest`` configured."""
        facts = MemoryKafka(self.world).facts(self.world.topics)
        try:
            return resume(ledger, facts, FROM_THE_END, "restore").position
        except RivermouthError as fault:
            return str(fault)

    @invariant()
    def the_offsets_table_follows_the_ledger(self) -> None:
        sequences = [each.entry.sequence for each in self.world.projected]
        assert sequences == list(range(1, len(sequences) + 1))
        assert len(sequences) <= self._history().sequence

    def teardown(self) -> None:
        """Whatever happened, an operator who does what the messages say gets to the end."""
        if self.over:
            return
        for _ in range(6):
            try:
                Driver(self.world, SETTINGS).open().batch()
                break
            except (LogTruncated, TopicRecreated):
                self._accept()
            except TableUndone as undone:
                if "--accept" not in undone.remedy:
                    self.world.truncate()
                try:
                    self._accept()
                except ResumeRefused:  # a RESTORE to before what was accepted
                    self.world.truncate()
                    self._accept()
            except LedgerBroken as torn:
                if "TRUNCATE, then" in torn.remedy:
                    self.world.truncate()
                    continue
                if "VERSION AS OF" not in torn.remedy:
                    raise
                self.world.restore(int(torn.remedy.partition("VERSION AS OF ")[2].split(",")[0]))
            except OffsetsTableAhead:
                raise AssertionError("the log lost what the offsets table knows") from None
        history = self._history()
        assert history.faults == (), history.faults
        assert history.position == Position(self.world.ends)
        self.the_table_holds_what_its_standing_entries_say()
        self.what_a_whole_ledger_says_holds_together()


def _starts_over(entry: Entry) -> bool:
    return entry.accepts is not None and entry.accepts.kind == "reset"


def run(examples: int, number: int | None = None) -> None:
    """Let Hypothesis try ``examples`` histories; ``number`` seeds it, and it does not shrink."""
    many = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        database=None,
        phases=(Phase.generate,) if number is not None else tuple(Phase),
    )
    machine = seed(number)(AnyOrder) if number is not None else AnyOrder
    run_state_machine_as_test(machine, settings=many)


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    """Crash until enough crashes are counted."""
    began, number = time.monotonic(), asked.seed
    while crashes.total() < asked.crashes:
        run(100, number)
        number += 1
    per_minute = round(crashes.total() / (time.monotonic() - began) * 60)
    return {"crashes": crashes.total(), "per_minute": per_minute}, []


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--crashes", type=int, default=10_000)
    sys.exit(command(campaign, options))
