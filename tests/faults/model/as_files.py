"""A batch as files: its tasks write them in one pass, and the driver commits what they wrote."""

from __future__ import annotations

from tests.faults.model.committing import if_stale, used, write
from tests.faults.model.definition import definition
from tests.faults.model.guards import Guards
from tests.faults.model.opening import BATCH_FAILED
from tests.faults.model.reading import content
from tests.faults.model.records import good, quarantined, readable, taken
from tests.faults.model.state import BATCH, PLANNED, STAGED, Driver, Entry, State, Waiting, put
from tests.faults.model.steps import halted


def write_files(state: State, guards: Guards, d: int, commit: object) -> State | None:
    """Write files, which nobody sees, and then the bad records; nothing where the plan is stale.

    Files that an earlier attempt left are taken where they are those of this batch; its bad records
    are written again from there, under the id of this attempt. A batch that is
    sent has none: its driver commits the entry alone, and looks at the table again, see ``begin``.
    What it does to the rows of the table is told by an index of these as they are now. Where Spark
    has read the batch, its rows are Spark's to merge: then only one without a good record is
    committed by the driver.
    """
    driver, log = state.drivers[d], state.table.log
    if driver.phase != PLANNED or driver.planned is None or used(state, commit):
        return None
    made, asks = definition(log)
    if asks and guards.left_to_spark:
        return None
    entry = driver.planned._replace(commit=commit, made=made)
    if state.effect.change and entry.read and good(state.topic, guards, entry):
        return None
    if (ended := if_stale(state, guards, d, entry)) is not None:
        return ended
    if state.effect.sends:
        return _alone(write(state, guards, d, commit), d, made)
    if entry.kind == BATCH:
        left = _left(guards, driver, entry)
        driver = driver._replace(waiting=None)
        if left is None and not readable(state.topic, entry):
            return halted(state, d, BATCH_FAILED)
        if left is not None:
            entry = _holding(entry, left)
        else:
            entry = entry._replace(read=state.topic.id, cuts=state.topic.epoch)
        if guards.quarantine_ahead and (left is None or guards.bad_again):
            state = state._replace(table=quarantined(state, entry, entry.read, entry.cuts))
    if state.effect.change:
        wrote = state.effect.change(content(log), taken(state.topic, guards, entry))
        entry = entry._replace(wrote=wrote)
    snapshot = len(log) - 1
    return put(state, d, driver._replace(phase=STAGED, planned=entry, snapshot=snapshot))


def _alone(written: State | None, d: int, made: int) -> State | None:
    """The state in which what was written is to be committed by the driver, if it can be."""
    planned = written.drivers[d].planned if written is not None else None
    if written is None or planned is None:
        return written
    return put(written, d, written.drivers[d]._replace(planned=planned._replace(made=made)))


def _left(guards: Guards, driver: Driver, entry: Entry) -> Waiting | None:
    """The files that wait, if they are those of this batch."""
    left = driver.waiting
    if left is None:
        return None
    others = (left.start, left.until) != (entry.start, entry.until)
    if (others and guards.waits_for_range) or (not left.there and guards.waits_whole):
        return None
    return None if left.made != entry.made and guards.waits_for_definition else left


def _holding(entry: Entry, left: Waiting) -> Entry:
    """The entry of files that waited. Without a guard they may hold other rows, or none."""
    until = left.until if left.there else left.start
    own = (left.start, until) == (entry.start, entry.until)
    holds = None if own else (left.start, until)
    return entry._replace(read=left.read, cuts=left.cuts, made=left.made, holds=holds)
