"""What counts as a violation of a soak, told from what was said, fed and read again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rivermouth.errors import LedgerBroken, TableUndone
from rivermouth.verification.ledger.entry import Commits
from rivermouth.verification.result import Findings

UNDONE, TORN = TableUndone.code, LedgerBroken.code
"""How a pipeline halts after a RESTORE between two batches, and after one in the middle of one."""
GROWTH_AT_MOST = 1.05
"""Above this, memory is not flat."""
_FAILED = re.compile(r"^FAILED (\S+)\n +(RM\d+)\b", re.MULTILINE)
"""How a command tells that a pipeline stopped, see ``rivermouth.run.text.failure``."""
Failure = tuple[str, str]
"""A pipeline, and the code of its error."""


def failures(said: str) -> list[Failure]:
    """The pipelines that gave up, as a driver says it, each once."""
    return [*dict.fromkeys((name, code) for name, code in _FAILED.findall(said))]


def unexpected(said: str, *expected: Failure) -> list[str]:
    """What a driver says of pipelines that gave up, without those that had to."""
    given_up = (each for each in failures(said) if each not in expected)
    return [f"{name} gave up with {code}" for name, code in given_up]


def asked_for(said: str, pipeline: str) -> int | None:
    """The version to which a pipeline that gave up asks to RESTORE; None: it asks for none."""
    words = (
        rf"^FAILED {re.escape(pipeline)}\n(?: +.*\n)*? +to do: RESTORE TABLE \S+ TO VERSION AS OF "
    )
    found = re.search(rf"{words}(\d+)", said, re.MULTILINE)
    return int(found[1]) if found else None


def differing(fed: Mapping[str, int], read: Mapping[str, int]) -> list[str]:
    """Where ``verify`` read another number of records than Kafka has acknowledged."""
    return [
        f"{each}: {fed.get(each, 0):,} records were fed, verify read {read.get(each, 0):,}"
        for each in sorted({*fed, *read})
        if fed.get(each, 0) != read.get(each, 0)
    ]


def grown(growth: float) -> list[str]:
    """The violation of a memory that is not flat."""
    if growth <= GROWTH_AT_MOST:
        return []
    return [f"memory grew by the factor {growth:.3f}, at most {GROWTH_AT_MOST} is allowed"]


def wound_back(log: Commits, pipeline: str) -> int | None:
    """The version to restore, so that two entries are rolled back; None: there are too few.

    Other commits may lie between entries, such as OPTIMIZE. An entry stays in effect.
    """
    app, quiet = f"rivermouth/{pipeline}", Findings(pipeline)
    entries = [each for each in log.versions() if app in log.read(each, quiet).txns]
    return entries[-3] if len(entries) > 2 else None
