"""What Spark's checkpoint would do, were it read: only where a guard is gone that keeps it out."""

from __future__ import annotations

from tests.faults.model.guards import Guards
from tests.faults.model.state import Checkpoint, Driver, State


def matters(guards: Guards) -> bool:
    """Whether anything of it is read; where nothing is, nothing of it is kept in the state."""
    return not (guards.fresh_checkpoint and guards.ledger_sequence)


def resumed(state: State, guards: Guards, d: int, driver: Driver) -> Driver:
    """A driver that starts where an earlier run's checkpoint stands."""
    kept = state.scratch[d] if state.scratch and not guards.fresh_checkpoint else None
    if kept is None or driver.owes:
        return driver
    return driver._replace(stream=kept.until if kept.done else kept.start)


def allows(state: State, d: int, until: int) -> bool:
    """Whether a batch that was planned before is planned again exactly as it was."""
    kept = state.scratch[d] if state.scratch else None
    return kept is None or kept.done or until == kept.until


def planned(kept: Checkpoint | None, start: int, until: int) -> Checkpoint:
    """Spark writes ``offsets/N`` before a batch."""
    batch = 0 if kept is None else kept.batch + int(kept.done)
    return Checkpoint(batch, start, until, done=False)


def done(state: State, guards: Guards, d: int) -> State:
    """Spark writes ``commits/N`` after it."""
    kept = state.scratch[d] if matters(guards) else None
    return state if kept is None else noted(state, d, kept._replace(done=True))


def noted(state: State, d: int, checkpoint: Checkpoint | None) -> State:
    """The state with another checkpoint of driver ``d``."""
    kept = (*state.scratch[:d], checkpoint, *state.scratch[d + 1 :])
    return state._replace(scratch=kept)
