"""A trace and the log it goes with, told by hand, for tests of conformance."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.builders import PIPELINE, TOPIC
from tests.faults.model.conformance import check_trace
from tests.faults.model.effects import ROWS, Effect

Dicts = list[dict[str, Any]]


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
        self.did("CREATE TABLE")

    def check(self) -> list[str]:
        return check_trace([json.dumps(each) for each in self.lines], self.log, effect=self.effect)

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
            "version": len(self.log) - 1,
            "sequence": self.sequence,
            "standing": self.sequence,
            "position": self._position(),
            "projected": self.projected,
        }
        return self.said("open", process, **{**facts, **changed})

    def planned(
        self, *ranges: tuple[int, int, int], kind: str = "batch", by: str = "a", **more: object
    ) -> Story:
        listed = [[TOPIC, *each] for each in ranges]
        return self.said("plan", by, kind=kind, sequence=self.sequence + 1, ranges=listed, **more)

    def wrote(self, *ranges: tuple[int, int, int], by: str = "a", **more: object) -> Story:
        """Write the planned ranges; the commit lands right away."""
        self.announced(*ranges, by=by)
        return self.landed(**more)

    def announced(self, *ranges: tuple[int, int, int], by: str = "a") -> Story:
        for partition, _, until in ranges:
            self.position[TOPIC][str(partition)] = until
        self.sequence += 1
        listed = [[TOPIC, *each] for each in ranges]
        facts = {"sequence": self.sequence, "ranges": listed, "position": self._position()}
        return self.said("write", by, commit=self.commit, **facts)

    def landed(self, **more: object) -> Story:
        written = [each for each in self.lines if each["step"] == "write"][-1]
        names = ("sequence", "commit", "ranges", "position")
        said = {name: deepcopy(written[name]) for name in names}
        entry = {"pipeline": PIPELINE, "topics": {}, **said, **more}
        txns = {f"rivermouth/{PIPELINE}": written["sequence"]}
        self.log.append({**self._commit("WRITE"), "txns": txns, "entry": entry})
        return self

    def sent(self, by: str = "a") -> Story:
        """All records of the batch that was written last were sent."""
        return self.said("send", by, commit=self.commit).said("sent", by, commit=self.commit)

    def settled(self, by: str = "a") -> Story:
        """The write returned, was read back and projected."""
        self.said("returned", by, commit=self.commit, fault=None)
        version = len(self.log) - 1
        self.said("read_back", by, commit=self.commit, outcome="committed", version=version)
        return self.projected_to(self.sequence, by)

    def projected_to(self, sequence: int, by: str = "a") -> Story:
        self.projected = sequence
        return self.said("project", by, sequence=sequence)

    def committed(self, *ranges: tuple[int, int, int], kind: str = "batch", by: str = "a") -> Story:
        return self.planned(*ranges, kind=kind, by=by).wrote(*ranges, by=by).settled(by)

    @property
    def commit(self) -> str:
        """The commit id of the newest entry."""
        return f"c{self.sequence}{self.attempt}"

    def _commit(self, operation: str) -> dict[str, Any]:
        empty: dict[str, Any] = {"parameters": {}, "txns": {}, "entry": None}
        return {"version": len(self.log), "operation": operation, **empty}

    def _position(self) -> dict[str, dict[str, int]]:
        return {TOPIC: dict(self.position[TOPIC])}


def refusal(story: Story, *words: str) -> str:
    """The only refusal, which must hold these words."""
    refusals = story.check()
    assert len(refusals) == 1, refusals
    for word in words:
        assert word in refusals[0], refusals
    return refusals[0]
