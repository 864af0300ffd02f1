"""Real drivers over the edges in memory of ``tests.doubles``, and the trace that they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rivermouth.errors import RivermouthError
from rivermouth.protocol.commits import CommitRecord
from tests.builders import PIPELINE
from tests.doubles import Driver, Killed, World, a_pipeline
from tests.faults.checker.at_length import at_length
from tests.faults.model.conformance import check_trace


class Recorder:
    """Runs drivers of ``tests.doubles`` and gives each the process id it would have had."""

    def __init__(self, file: Path, world: World) -> None:
        self.file, self.world, self.lines = file, world, list[str]()
        self._started = 0

    def driver(self, *, late: bool = False, **settings: Any) -> tuple[str, Driver]:
        self._started += 1
        return f"process-{self._started}", Driver(self.world, a_pipeline(**settings), late=late)

    def did(self, name: str, call: Any, *, run: bool = True) -> bool:
        """Let a driver do something; True if it lives on. Its steps become lines.

        A command that is no ``run`` says nothing of its end.
        """
        lives = True
        try:
            call()
        except (Killed, RivermouthError) as end:
            lives = False
            code = getattr(end, "code", None) if run else None
        for text in self.file.read_text().splitlines() if self.file.exists() else []:
            self.lines.append(json.dumps({**json.loads(text), "process": name}))
        self.file.unlink(missing_ok=True)
        if not lives and code:
            self._said(name, "halt", code=code)
        return lives

    def accepts(self, what: str, crash: str = "") -> None:
        """An operator accepts something, or dies in a step of it."""
        name, operator = self.driver()
        operator.crash.step = crash
        self.did(name, lambda: operator.ingest.resume(what))

    def closed(self, name: str) -> None:
        self._said(name, "close")

    def _said(self, name: str, step: str, **facts: object) -> None:
        line = {"process": name, "pipeline": PIPELINE, "step": step, **facts}
        self.lines.append(json.dumps(line))

    def check(self, since: int = 0, **how: Any) -> list[str]:
        """What is no path in the lines from number ``since`` (from 0) on."""
        commits = [as_dict(each) for each in self.world.commits]
        return check_trace(self.lines[since:], commits, **how)


def work(recorder: Recorder, crash: str = "", at: int = 0, **settings: Any) -> None:
    """One run: open, then batches until nothing is left, or a crash in step ``at``."""
    name, driver = recorder.driver(**settings)
    steps = [lambda each: driver.open(each), *[lambda each: driver.batch(4, each)] * 4]
    for number, step in enumerate(steps):
        said = crash if number == at else ""
        if not recorder.did(name, lambda step=step, said=said: step(said)):
            return
    recorder.closed(name)


def as_dict(record: CommitRecord) -> dict[str, Any]:
    text = record.user_metadata
    entry = at_length(json.loads(text)) if text else None
    names = ("version", "operation", "parameters", "txns")
    return {**{name: getattr(record, name) for name in names}, "entry": entry}
