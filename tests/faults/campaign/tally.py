"""What a campaign has done so far, kept in a file, so that it can be stopped and gone on with."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Violated(Exception):
    """Something that may never happen has happened; the world is kept as it is."""


@dataclass
class Tally:
    """Counts of one campaign. ``rounds`` are those that are over.

    ``faults`` are those that struck something, ``commits`` those with entries, by the way that they
    were made, and how often that changed inside a run. ``conformed`` is how many pipelines, world
    by world, have walked a path of the model. ``forms`` counts worlds, by what records
    they had. ``answers`` are those of an object store that were no plain ones.
    """

    seed: int
    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    halts: Counter[str] = field(default_factory=Counter)
    commits: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    survived: int = 0
    conformed: int = 0
    records: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """What the last line of a campaign tells."""
        by_kind: Counter[str] = Counter()
        for name, number in self.kills.items():
            by_kind[name.split()[0]] += number
        points = {name.split()[1]: n for name, n in self.kills.items() if name.startswith("point ")}
        return {
            "rounds": self.rounds,
            "kills": {"total": self.kills.total(), **dict(sorted(by_kind.items()))},
            "points": dict(sorted(points.items())),
            "commits": dict(sorted(self.commits.items())),
            "forms": dict(sorted(self.forms.items())),
            "faults": dict(sorted(self.faults.items())),
            "answers": dict(sorted(self.answers.items())),
            "halts": dict(sorted(self.halts.items())),
            "conformed": self.conformed,
            "records": self.records,
            "seconds": round(self.seconds),
        }

    def save(self, file: Path) -> None:
        """Write it down, whole or not at all."""
        part = file.with_suffix(".part")
        part.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")
        os.replace(part, file)

    @staticmethod
    def load(file: Path, seed: int) -> Tally:
        """The tally of an earlier part of this campaign; a new one where there is none.

        Raises ValueError where the file is another seed's.
        """
        if not file.exists():
            return Tally(seed)
        facts: dict[str, Any] = json.loads(file.read_text("utf-8"))
        if facts["seed"] != seed:
            raise ValueError(f"{file} is the tally of seed {facts['seed']}")
        for name in ("kills", "faults", "halts", "commits", "forms", "answers"):
            facts[name] = Counter(facts[name])
        return Tally(**facts)
