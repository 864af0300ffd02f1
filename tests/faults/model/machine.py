"""The one definition of a step: an action, applied to a state, gives the next state or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.faults.model import as_files, committing, sending, steps, stores, world
from tests.faults.model.guards import Guards
from tests.faults.model.state import State

Action = tuple[Any, ...]
"""The name of a step and what it takes: ``("plan", 0, "batch", 0, 2)``."""

Step = Callable[..., State | None]

STEPS: Mapping[str, Step] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            # a driver, in this order
            steps.start,
            steps.project,
            steps.plan,
            committing.stage,
            steps.see,
            committing.write,
            as_files.write_files,
            sending.send,
            committing.begin,
            committing.land,
            committing.fail,
            committing.time_out,
            committing.conflict,
            committing.read_back,
            steps.hand_over,
            steps.close,
            # everybody else, at any time
            world.crash,
            world.orphan,
            stores.arrive,
            world.lose_checkpoint,
            world.produce,
            world.settle,
            world.expire,
            world.leap,
            world.recreate,
            world.cut,
            world.optimize,
            world.alter,
            world.vacuum,
            world.restore,
            world.empty,
            world.delete,
            world.trim,
            world.drop,
            world.lose_tail,
            world.lose_offsets,
        )
    }
)

SPARK, AS_FILES = "write", "write_files"
"""The ways of a commit, by the step that begins it."""

ALL_GUARDS = Guards()


def apply(state: State, action: Action, guards: Guards = ALL_GUARDS) -> State | None:
    """The state after ``action``; None where it is not enabled.

    Offsets, ends of batches and commit ids may be anything: only ``explore`` bounds them.
    """
    after = STEPS[action[0]](state, guards, *action[1:])
    return None if after is None else stores.settled(after)
