"""What an object store does with a put: at once, or long after its client has gone."""

from __future__ import annotations

from collections.abc import Collection

from tests.faults.model.guards import Guards
from tests.faults.model.state import BATCH, COMMITTING, Entry, Late, Log, State, put


def put_at(state: State, version: int, entry: Entry) -> Log:
    """The log after a put of one version, if there is none: the same where there is one.

    A store in which the last one wins replaces it.
    """
    log = state.table.log
    if version == len(log):
        return (*log, entry)
    return (*log[:version], entry, *log[version + 1 :]) if state.last_wins else log


def under_way(state: State, guards: Guards, d: int) -> State | None:
    """The state in which the put of a driver may still arrive; None where it makes none.

    Without a guard its files are removed by then.
    """
    driver = state.drivers[d]
    entry = driver.planned
    if driver.phase != COMMITTING or entry is None or not entry.as_files or guards.lock:
        return None
    known = driver._replace(given_up=(*driver.given_up, entry.commit))
    if not guards.kept_unless_refused and entry.kind == BATCH:
        entry = entry._replace(holds=(entry.start or 0, entry.start or 0))
    state = state._replace(late=(*state.late, Late(driver.snapshot + 1, entry)))
    return put(state, d, known)


def settled(state: State) -> State:
    """The same state without puts that can do nothing any more; drivers forget these, too."""
    if not state.late and not any(each.given_up for each in state.drivers):
        return state
    log = state.table.log
    late = tuple(each for each in state.late if state.last_wins or each.version >= len(log))
    known = (*log, *(each.entry for each in late))
    ids = {each.commit for each in known if isinstance(each, Entry)}
    drivers = (each._replace(given_up=_among(ids, each.given_up)) for each in state.drivers)
    return state._replace(late=late, drivers=tuple(drivers))


def _among(ids: Collection[object], given_up: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(each for each in dict.fromkeys(given_up) if each in ids)


def arrive(state: State, guards: Guards, number: int = 0) -> State | None:
    """A put arrives that nobody waits for."""
    if number >= len(state.late):
        return None
    late = state.late[number]
    log = put_at(state, late.version, late.entry)
    others = (*state.late[:number], *state.late[number + 1 :])
    return state._replace(table=state.table._replace(log=log), late=others)
