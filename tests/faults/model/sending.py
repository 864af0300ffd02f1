"""The steps of a batch that sends its records: before its commit, or once that was read back."""

from __future__ import annotations

from tests.faults.model.effects import FIRST, LAST
from tests.faults.model.guards import Guards
from tests.faults.model.records import taken
from tests.faults.model.state import (
    BATCH,
    COMMITTING,
    RETURNED,
    STAGED,
    VERIFIED,
    Entry,
    Sent,
    Sink,
    State,
    put,
)

UNDER_WAY = (COMMITTING, RETURNED, VERIFIED)
"""Where the commit of a batch may be in the log."""


def prepared(state: State, guards: Guards, d: int, entry: Entry) -> State:
    """The batch is read: these records are to be sent under the commit id of the entry.

    Where the commit is tried again under another id, all of them may have been sent.
    """
    driver, sink = state.drivers[d], state.sink
    records = tuple(taken(state.topic, guards, entry)) if entry.kind == BATCH else ()
    if driver.attempt is not None and state.effect.sends == FIRST and guards.sent_once:
        mine = [each.commit == driver.attempt for each in sink.received]
        received = zip(sink.received, mine, strict=True)
        renamed = [each._replace(commit=entry.commit) if own else each for each, own in received]
        sink, records = sink._replace(received=_sorted(renamed)), ()
    attempt = entry.commit if records or driver.attempt is not None else None
    state = state._replace(sink=sink)
    return put(state, d, driver._replace(attempt=attempt, unsent=records))


def send(state: State, guards: Guards, d: int, number: int = 1) -> State | None:
    """The sink gets, and acknowledges, so many of the records that are still to be sent."""
    driver = state.drivers[d]
    if not 0 < number <= len(driver.unsent) or driver.phase not in _phases(state, guards):
        return None
    new = [Sent(driver.attempt, each) for each in driver.unsent[:number]]
    received = _sorted([*state.sink.received, *new])
    unsent = driver.unsent[number:]
    ended = driver.phase == VERIFIED and not unsent
    driver = driver._replace(unsent=unsent, attempt=None if ended else driver.attempt)
    return put(state._replace(sink=state.sink._replace(received=received)), d, driver)


def is_due(state: State, guards: Guards, d: int, when: str) -> bool:
    """Whether records are to be sent first, before the driver may take its next step."""
    return guards.acknowledged and state.effect.sends == when and bool(state.drivers[d].unsent)


def gave_up(state: State, d: int) -> State:
    """The write fails. Where the sink did not take all, what is tried again is sent anew."""
    driver = state.drivers[d]
    if state.effect.sends != FIRST or not driver.unsent:
        return state
    return put(broken(state, d), d, driver._replace(attempt=None, unsent=()))


def broken(state: State, d: int) -> State:
    """The state in which the batch that driver ``d`` has under way will not come to its end."""
    driver, sink = state.drivers[d], state.sink
    if driver.attempt is None or driver.attempt in sink.broken:
        return state
    if driver.phase not in UNDER_WAY and all(e.commit != driver.attempt for e in sink.received):
        return state  # nothing of it is anywhere
    ids = sorted((*sink.broken, driver.attempt), key=str)
    return state._replace(sink=Sink(sink.received, tuple(ids)))


def _phases(state: State, guards: Guards) -> tuple[str, ...]:
    """Where a driver may send."""
    if state.effect.sends == LAST:
        return (VERIFIED,) if guards.sent_last else (RETURNED, VERIFIED)
    return (STAGED,) if guards.acknowledged else (STAGED, *UNDER_WAY)


def _sorted(received: list[Sent]) -> tuple[Sent, ...]:
    """In which order records came is of no account."""
    return tuple(sorted(received, key=lambda each: (each.record, str(each.commit))))
