"""The records of a batch: which become rows, which go to quarantine, which are still there."""

from __future__ import annotations

from tests.faults.model.effects import Record
from tests.faults.model.guards import Guards
from tests.faults.model.state import BATCH, Bad, Entry, State, Table, Topic, Waiting, put


def good(topic: Topic, guards: Guards, entry: Entry) -> list[int]:
    """The offsets of a batch that become rows of the table."""
    if entry.kind != BATCH or entry.start is None or entry.until is None:
        return []
    start, until = entry.holds or (entry.start, entry.until)
    hidden = (*topic.bad, *topic.aborted) if guards.read_committed else topic.bad
    return [each for each in range(start, until) if each not in hidden]


def taken(topic: Topic, guards: Guards, entry: Entry) -> list[Record]:
    """The records that a batch has read and that become rows, or are sent."""
    return [topic.record(entry.read, entry.cuts, each) for each in good(topic, guards, entry)]


def readable(topic: Topic, entry: Entry) -> bool:
    """Whether Kafka still gives the range: ``failOnDataLoss`` fails the batch if not."""
    if entry.kind != BATCH or entry.start is None or entry.until is None:
        return True
    return entry.start == entry.until or topic.low <= entry.start < entry.until <= topic.end


def quarantined(
    state: State, entry: Entry, read: int | None = None, cuts: int | None = None
) -> Table:
    """The table with the bad records of a batch in quarantine, under the entry's commit id.

    They were read from the incarnation ``read`` after so many ``cuts``; None: they are read now.
    """
    topic, table = state.topic, state.table
    if entry.kind != BATCH or entry.start is None or entry.until is None:
        return table
    offsets = [each for each in topic.bad if entry.start <= each < entry.until]
    source = topic.id if read is None else read, topic.epoch if cuts is None else cuts
    rows = tuple(Bad(entry.commit, source[0], each, source[1]) for each in offsets)
    return table._replace(quarantine=table.quarantine + rows)


def left_waiting(state: State, guards: Guards, d: int) -> State:
    """The state in which the files that driver ``d`` did not commit wait for its next attempt."""
    driver = state.drivers[d]
    entry = driver.planned
    if entry is None or not entry.as_files or entry.kind != BATCH or state.effect.sends:
        return state
    start, until = entry.holds or (entry.start or 0, entry.until or 0)
    waiting = Waiting(start, until, entry.read, entry.cuts, entry.made)
    return put(state, d, driver._replace(waiting=waiting))
