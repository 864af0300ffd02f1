"""Whether a pipeline keeps up, judged by what it committed lately. Pure, but for reading the log.

There is no threshold to set. As with Burrow, the evidence is a window of the newest commits: when
they were made, what they read, and how old the newest record was when it was committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, pairwise
from typing import Any

from rivermouth.operate.history import events
from rivermouth.warehouse.ports import LedgerLog

_COMMITS, _STEPS = 64, 16
"""So many of the newest commits are looked at, for so many entries of a pipeline."""
_ENOUGH = 4
"""So many commits have to tell how old their records were, before these ages prove anything."""
_SOON_S, _QUIET_S = 10.0, 60.0


class State(Enum):
    """What a pipeline is in."""

    NEW = "NEW"
    """Nothing has been committed yet."""
    OK = "OK"
    """Nothing waits, or what waits came since the last commits, as it does while records come."""
    CATCHING_UP = "CATCHING_UP"
    """Records wait, and commits come nearer to the end of the topics."""
    SLOW = "SLOW"
    """Commits read records, and come no nearer: as many records come."""
    STALLED = "STALLED"
    """Commits read nothing for a minute although records wait, or a run tries its batch again."""
    STOPPED = "STOPPED"
    """Records wait, and nothing was committed for longer than usual."""
    BLOCKED = "BLOCKED"
    """A guard would halt the next run; the reason is its text."""
    UNKNOWN = "UNKNOWN"
    """Kafka or a table could not be read; the reason says why."""


@dataclass(frozen=True)
class Step:
    """One entry: when it was committed, in ms since 1970, how many offsets it read, and how old
    its newest record was then (None: nobody can tell). Of its ``records`` some are ``quarantined``.
    """

    at_ms: int
    offsets: int
    behind_ms: int | None = None
    records: int = 0
    quarantined: int = 0


@dataclass(frozen=True)
class Pace:
    """The newest entries of a pipeline that stand, the oldest one first."""

    steps: Sequence[Step] = ()

    @property
    def offsets_per_s(self) -> float | None:
        """How many offsets a second they read; None: fewer than two tell it."""
        read = sum(each.offsets for each in self.steps[1:])
        return round(read / self.lasts_s, 1) if self.lasts_s > 0 else None

    @property
    def lasts_s(self) -> float:
        """The time from the first to the last."""
        return (self.steps[-1].at_ms - self.steps[0].at_ms) / 1000 if self.steps else 0.0

    @property
    def pause_s(self) -> float:
        """The longest time between two of them; 0: there are no two."""
        pairs = pairwise(self.steps)
        return max(((after.at_ms - before.at_ms) / 1000 for before, after in pairs), default=0.0)

    @property
    def quarantined(self) -> float | None:
        """The part of their records that is bad; None: they have none."""
        records = sum(each.records for each in self.steps)
        return sum(each.quarantined for each in self.steps) / records if records else None

    def caught_up_in(self, age_s: float) -> float | None:
        """How many seconds until nothing waits, if ``age_s`` falls as it did at these commits.

        None: it does not fall, or nobody can tell.
        """
        known = [each for each in self.steps if each.behind_ms is not None]
        if len(known) < 2 or known[-1].at_ms <= known[0].at_ms:
            return None
        fell = (known[0].behind_ms or 0) - (known[-1].behind_ms or 0)
        took = known[-1].at_ms - known[0].at_ms
        return round(age_s * took / fell, 1) if fell > 0 else None

    def as_dict(self) -> dict[str, Any]:
        """For machines: the steps as ``[time, offsets, age]``, ages in ms."""
        return {
            "offsets_per_second": self.offsets_per_s,
            "quarantined_share": self.quarantined,
            "commits": [[each.at_ms, each.offsets, each.behind_ms] for each in self.steps],
        }


@dataclass(frozen=True)
class Evidence:
    """What is known of a pipeline that goes on; times in ms since 1970.

    ``waiting`` is in offsets. ``oldest_ms`` is the timestamp of the oldest record that waits (None:
    not known). ``retrying``: a run tries its batch again.
    """

    now_ms: float
    waiting: int
    pace: Pace = field(default_factory=Pace)
    oldest_ms: int | None = None
    retrying: bool = False

    @property
    def state(self) -> State:
        """The first of these that holds."""
        steps = self.pace.steps
        if not self.waiting:
            return State.OK
        if not steps:
            return State.NEW
        if self.retrying:
            return State.STALLED
        if self._quiet_s > max(2 * self.pace.pause_s, _QUIET_S):
            return State.STOPPED
        if self.pace.lasts_s > _QUIET_S and not any(each.offsets for each in steps):
            return State.STALLED
        if self._comes_as_ever:
            return State.OK
        return State.SLOW if self._never_nearer else State.CATCHING_UP

    @property
    def _quiet_s(self) -> float:
        """Since when something waits that is not committed."""
        since = max(self.pace.steps[-1].at_ms, self.oldest_ms or 0)
        return (self.now_ms - since) / 1000

    @property
    def _comes_as_ever(self) -> bool:
        """Whether it is what comes from one commit to the next but one."""
        usual_s = max(2 * self.pace.pause_s, _SOON_S)
        if self.oldest_ms is not None and self.now_ms - self.oldest_ms <= usual_s * 1000:
            return True
        return self.waiting <= (self.pace.offsets_per_s or 0.0) * usual_s

    @property
    def _never_nearer(self) -> bool:
        """Whether the later half of the commits came no nearer to the end than the first half."""
        ages = [each.behind_ms for each in self.pace.steps if each.behind_ms is not None]
        half = len(ages) // 2
        return len(ages) >= _ENOUGH and min(ages[half:]) >= min(ages[:half])


def pace_of(log: LedgerLog, pipeline: str) -> Pace:
    """The pace of a pipeline, by the name of its ledger.

    Reads the newest commits. Raises LogUnreadable and LedgerBroken.
    """
    newest = islice(events(log.commits_backwards(), pipeline), _COMMITS)
    found = (each for each in newest if each.stands and each.entry is not None)
    steps = list[Step]()
    for each in islice(found, _STEPS):
        at_ms, record_ms = each.record.timestamp_ms, log.newest_record_ms(each.record.version)
        behind_ms = None if record_ms is None else max(0, at_ms - record_ms)
        counts = each.counted() or (0, 0, 0)
        steps.append(Step(at_ms, each.offsets or 0, behind_ms, sum(counts), counts[1]))
    return Pace(tuple(reversed(steps)))
