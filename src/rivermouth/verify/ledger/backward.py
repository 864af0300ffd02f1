"""A log read from its end, as far as is asked for: which of its commits hold an entry in effect.

It says what ``Chain.effective`` says, and keeps nothing of the entries. What a RESTORE rolled back
is known before it is reached, so no part of the log is read twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rivermouth.verify.ledger.chain import empties
from rivermouth.verify.ledger.commits import Commit, Commits
from rivermouth.verify.result import Findings

_TELLING = ('"accepts"', '"changes"', '"replayed"')
"""Only an entry whose text holds one of these is parsed: most are long, and say none of it."""


@dataclass(frozen=True)
class Step:
    """One commit; ``effective``: it holds an entry of the pipeline, which is in effect.

    ``changes``: that entry accepts a change of the source. ``replays``: it applied records of
    earlier entries once more.
    """

    version: int
    commit: Commit
    effective: bool = False
    changes: bool = False
    replays: bool = False


def read_back(commits: Commits, pipeline: str, versions: Sequence[int]) -> Iterator[Step]:
    """The commits of ``versions``, newest first, each read once.

    It ends early where no entry before can be in effect. A commit with the ``txn`` of the pipeline
    counts as an entry: whether its text is one is for the reader of the chain to say.
    """
    app, quiet = f"rivermouth/{pipeline}", Findings(pipeline)
    reach = versions[-1] if versions else -1
    restored = False  # whether a RESTORE leads here, and no entry lies between
    for version in reversed(versions):
        commit = commits.read(version, quiet)
        if version > reach:
            yield Step(version, commit)
        elif app in commit.txns:
            told = _told(commit)
            said = {"changes": "changes" in told, "replays": "replayed" in told}
            yield Step(version, commit, effective=True, **said)
            accepts = told.get("accepts")
            if isinstance(accepts, dict) and accepts.get("kind") == "reset":
                return
            restored = False
        else:
            yield Step(version, commit)
            if str(commit.info.get("operation")) == "RESTORE":
                target = str((commit.info.get("operationParameters") or {}).get("version"))
                restored = target.isdigit()
                reach = int(target) if restored else reach
            elif restored and empties(commit):
                return


def _told(commit: Commit) -> Mapping[str, Any]:
    """What an entry accepts or replays, with all else that it says; empty where it does neither."""
    text = str(commit.info.get("userMetadata"))
    if not any(each in text for each in _TELLING):
        return {}
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
