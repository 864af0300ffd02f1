"""What Spark's checkpoint would do, were it read: only where a guard is gone that keeps it out."""

from __future__ import annotations

from tests.faults.model.guards import Guards
from tests.faults.model.state import Checkpoint, Driver, State


def matters(guards: Guards) -> bool:
    """Whether anything of it is read; where nothing is, nothing of it is kept in the state."""
    return not (guards.fresh_checkpoint and guards.ledger_sequence)


def resumed(state: State, guards: Guards, d: int, driver: Driver) -> Driver:
    """A driver that starts where an earlier run's checkpoint stands."""
    last = state.scratch[d] if state.scratch and not guards.fresh_checkpoint else None
    if last is None or driver.owes:
        return driver
    return driver._replace(stream=last.until if last.done else last.start)


def allows(state: State, d: int, until: int) -> bool:
    """Whether a batch that was planned before is planned again exactly as it was."""
    last = state.scratch[d] if state.scratch else None
    return last is None or last.done or until == last.until


def planned(last: Checkpoint | None, start: int, until: int) -> Checkpoint:
    """Spark writes ``offsets/N`` before a batch."""
    batch = 0 if last is None else last.batch + int(last.done)
    return Checkpoint(batch, start, until, done=False)


def done(state: State, guards: Guards, d: int) -> State:
    """Spark writes ``commits/N`` after it."""
    last = state.scratch[d] if matters(guards) else None
    return state if last is None else put_checkpoint(state, d, last._replace(done=True))


def put_checkpoint(state: State, d: int, checkpoint: Checkpoint | None) -> State:
    """The state with another checkpoint of driver ``d``."""
    checkpoints = (*state.scratch[:d], checkpoint, *state.scratch[d + 1 :])
    return state._replace(scratch=checkpoints)
