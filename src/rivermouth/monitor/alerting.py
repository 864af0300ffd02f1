"""Which alerts are due: by what holds of each pipeline now, and by what was told before. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import Any

from rivermouth.config.alerts import STATES, Condition
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus
from rivermouth.run.text import duration


class Event(Enum):
    """What an alert tells."""

    RAISED = "raised"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Alert:
    """A condition of a pipeline that began to hold, or holds no longer.

    ``id`` is that of the time in which it holds: both events have it. ``at_ms`` is when the event
    was seen, in ms since 1970. ``pending`` are the ways by which it still has to go out.
    """

    id: str
    pipeline: str
    condition: str
    event: Event
    at_ms: int
    text: str
    pending: tuple[str, ...] = ()

    def told(self, way: str) -> Alert:
        """The same, once it went out by that way."""
        return replace(self, pending=tuple(each for each in self.pending if each != way))

    def as_dict(self) -> dict[str, Any]:
        """For its note, and for machines."""
        return {**asdict(self), "event": self.event.value, "pending": [*self.pending]}


def from_dict(facts: Mapping[str, Any]) -> Alert:
    """From ``Alert.as_dict``. Raises KeyError, TypeError or ValueError."""
    event, pending = Event(facts["event"]), tuple(map(str, facts["pending"]))
    return Alert(**{**facts, "event": event, "pending": pending})


def holds(condition: Condition, found: PipelineStatus) -> bool | None:
    """Whether a condition holds of a pipeline; None: nobody can tell now."""
    if condition.of in STATES:
        if found.state is State.UNKNOWN and condition.of != "unknown":
            return None
        return found.state.value.lower() == condition.of
    value = _value(condition, found)
    if value is None:
        known = found.lag_messages is not None
        return False if known and condition.of != "lag" else None
    return value < condition.limit if condition.of == "retention" else value > condition.limit


def _value(condition: Condition, found: PipelineStatus) -> float | None:
    if condition.of == "quarantine":
        return found.pace.quarantined
    if condition.of == "lag":
        return found.lag_seconds
    return found.waiting.left.seconds if found.waiting is not None else None


def text_of(condition: Condition, found: PipelineStatus, event: Event) -> str:
    """What a person reads: what holds, and the reason with its remedy."""
    if event is Event.RESOLVED:
        return f"{found.name}: {condition} holds no longer; it is {found.state.value}"
    value = _value(condition, found) if condition.of not in STATES else None
    measured = "" if value is None else f" (now {_shown(condition, value)})"
    reason = f": {found.reason}" if found.reason else ""
    return f"{found.name}: {condition}{measured}, it is {found.state.value}{reason}"


def _shown(condition: Condition, value: float) -> str:
    return f"{value:.2%}" if condition.of == "quarantine" else duration(value)


def due(
    condition: Condition,
    found: PipelineStatus,
    former: Alert | None,
    ways: Collection[str],
    now_ms: int,
) -> Alert | None:
    """The alert that stands now; ``former`` is the one that stood before.

    The former one, as it is: nothing changed. None: there is nothing to tell, and there was not.
    Two processes that saw the same former one make the same id.
    """
    holding = holds(condition, found)
    raised = former is not None and former.event is Event.RAISED
    if holding is None or holding is raised:
        return former
    event = Event.RAISED if holding else Event.RESOLVED
    known = former.id if former is not None else ""
    if holding:
        seed = f"{known} {found.name} {found.table} {condition}"
        known = sha256(seed.encode()).hexdigest()[:16]
    # What still had to go out is over: the next event tells more, also where nobody heard of it.
    text = text_of(condition, found, event)
    return Alert(known, found.name, condition.text, event, now_ms, text, tuple(ways))
