"""A trace and the log it goes with, told by hand, for tests of conformance."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.builders import PIPELINE, TOPIC
from tests.faults.model.configurations import FILES
from tests.faults.model.conformance import check_trace
from tests.faults.model.effects import ROWS, Effect
from tests.faults.model.guards import Guards

Dicts = list[dict[str, Any]]
Range = tuple[int, int, int]
"""A partition, and from where until where it is read."""


@dataclass
class Story:
    """A trace and the log it goes with, told by hand: one topic, partitions 0, 1, …"""

    lines: Dicts = field(default_factory=list)
    log: Dicts = field(default_factory=list)
    position: dict[str, dict[str, int]] = field(default_factory=lambda: {TOPIC: {}})
    sequence: int = 0
    projected: int = 0
    effect: Effect = ROWS
    attempt: str = ""
    """What tells the commit ids of another attempt from those of the first one."""

    def __post_init__(self) -> None:
        self._before = self.sequence, self._position()
        self.did("CREATE TABLE")

    def check(self, guards: Guards = FILES) -> list[str]:
        lines = [json.dumps(each) for each in self.lines]
        return check_trace(lines, self.log, guards=guards, effect=self.effect)

    def as_files(self) -> Story:
        """The newest commit is one of files."""
        self.log[-1]["as_files"] = True
        return self

    def did(self, operation: str, **parameters: object) -> Story:
        self.log.append({**self._commit(operation), "parameters": parameters})
        return self

    def said(self, step: str, process: str = "a", **facts: object) -> Story:
        common = {"at": len(self.lines), "process": process, "pipeline": PIPELINE, "step": step}
        self.lines.append({**common, **facts})
        return self

    def opened(self, process: str = "a", **changed: object) -> Story:
        facts: dict[str, object] = {
            "version": self.version,
            "sequence": self.sequence,
            "standing": self.sequence,
            "position": self._position(),
            "projected": self.projected,
        }
        return self.said("open", process, **{**facts, **changed})

    def planned(self, *ranges: Range, kind: str = "batch", by: str = "a", **more: object) -> Story:
        listed = [[TOPIC, *each] for each in ranges]
        return self.said("plan", by, kind=kind, sequence=self.sequence + 1, ranges=listed, **more)

    def wrote(self, *ranges: Range, by: str = "a", **more: object) -> Story:
        """Write the planned ranges; the commit lands right away."""
        self.announced(*ranges, by=by)
        return self.landed(**more)

    def announced(self, *ranges: Range, by: str = "a") -> Story:
        """Write the planned ranges; nobody knows yet whether the commit lands."""
        self._before = self.sequence, self._position()
        for partition, _, until in ranges:
            self.position[TOPIC][str(partition)] = until
        self.sequence += 1
        listed = [[TOPIC, *each] for each in ranges]
        facts = {"sequence": self.sequence, "ranges": listed, "position": self._position()}
        return self.said("write", by, commit=self.commit, **facts)

    def not_landed(self) -> Story:
        """What was announced did not land: the next attempt has its number, and another id."""
        self.sequence, self.position = self._before
        self.attempt += " again"
        return self

    def landed(self, **more: object) -> Story:
        return self.landed_late(self.lines[self.last("write")], **more)

    def landed_late(self, written: dict[str, Any], **more: object) -> Story:
        """What was announced by this line has landed by now."""
        names = ("sequence", "commit", "ranges", "position")
        said = {name: deepcopy(written[name]) for name in names}
        entry = {"pipeline": PIPELINE, "topics": {}, **said, **more}
        txns = {f"rivermouth/{PIPELINE}": written["sequence"]}
        self.log.append({**self._commit("WRITE"), "txns": txns, "entry": entry})
        return self

    def sent(self, by: str = "a") -> Story:
        """All records of the batch that was written last were sent."""
        return self.said("send", by, commit=self.commit).said("sent", by, commit=self.commit)

    def ended(self, outcome: str = "committed", fault: str | None = None, by: str = "a") -> Story:
        """The write returned, or raised a fault, and was read back."""
        self.said("returned", by, commit=self.commit, fault=fault)
        facts = {"commit": self.commit, "outcome": outcome, "version": self.version}
        return self.said("read_back", by, **facts)

    def settled(self, by: str = "a") -> Story:
        """The write returned, was read back and projected."""
        return self.ended(by=by).projected_to(self.sequence, by)

    def without(self, *steps: str) -> Story:
        """The last line of each of these steps was never said."""
        for step in steps:
            del self.lines[self.last(step)]
        return self

    def last(self, step: str) -> int:
        """The number of the last line of a step."""
        return max(n for n, each in enumerate(self.lines) if each["step"] == step)

    def projected_to(self, sequence: int, by: str = "a") -> Story:
        self.projected = sequence
        return self.said("project", by, sequence=sequence)

    def committed(self, *ranges: Range, kind: str = "batch", by: str = "a") -> Story:
        return self.planned(*ranges, kind=kind, by=by).wrote(*ranges, by=by).settled(by)

    @property
    def version(self) -> int:
        """The newest version of the log."""
        return int(self.log[-1]["version"]) if self.log else -1

    @property
    def commit(self) -> str:
        """The commit id of the newest entry."""
        return f"c{self.sequence}{self.attempt}"

    def _commit(self, operation: str) -> dict[str, Any]:
        empty: dict[str, Any] = {"parameters": {}, "txns": {}, "entry": None}
        return {"version": self.version + 1, "operation": operation, **empty}

    def _position(self) -> dict[str, dict[str, int]]:
        return {TOPIC: dict(self.position[TOPIC])}


def is_refused(story: Story, words: str) -> None:
    """One line is refused, with these words; ``…`` stands for any others."""
    refusals = story.check()
    assert len(refusals) == 1, refusals
    assert all(each in refusals[0] for each in words.split("…")), refusals
