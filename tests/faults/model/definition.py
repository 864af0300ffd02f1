"""What a table asks of who writes it: which definition is in effect at a version, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tests.faults.model.reading import REMEMBERED
from tests.faults.model.state import ALTER, ASK, RESTORE, Entry, Log, Other

UNFIT = "UNFIT FILES"


@lru_cache(REMEMBERED)
def definition(log: Log) -> tuple[int, bool]:
    """The version that brought the definition in effect, and whether it asks for Spark's writer."""
    return _definitions(log)[-1]


def unfit(log: Log) -> Iterator[str]:
    """Files that were committed into a table which they were not written for."""
    if not any(isinstance(each, Entry) and each.as_files for each in log):
        return
    definitions = _definitions(log)
    for version, each in enumerate(log):
        if isinstance(each, Entry) and each.as_files and definitions[version] != (each.made, False):
            yield f"{UNFIT}: those of entry {each.sequence} are not as the table asks"


def _definitions(log: Log) -> list[tuple[int, bool]]:
    """The definition after each commit, which is that before it where the commit is no ALTER."""
    definitions: list[tuple[int, bool]] = []
    now = (0, False)
    for version, commit in enumerate(log):
        if isinstance(commit, Other) and commit.operation in (ALTER, ASK):
            now = (version, commit.operation == ASK)
        elif isinstance(commit, Other) and commit.operation == RESTORE and commit.version >= 0:
            now = definitions[commit.version]
        definitions.append(now)
    return definitions
