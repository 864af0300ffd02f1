"""Whether a table may be maintained now, and what its log tells of its pipelines. Only looks.

Maintenance commits, too, and commits bring on checkpoints and with them log clean-up. So it
leaves alone what a start would halt at, and what has been quiet for so long that the next start
writes its entry again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.errors import Halt
from rivermouth.protocol.guards import check_identity
from rivermouth.run.committer import Keeper
from rivermouth.run.report import Silent
from rivermouth.warehouse.folder.log import is_old
from rivermouth.warehouse.ports import Books

_LOOKS = 5
"""How often a log is read while runs commit."""


@dataclass(frozen=True)
class Standing:
    """What stands in one table.

    ``commits`` are those of the entries in its log, by pipeline and sequence; ``quiet`` says why
    the table is to be left alone, and is empty where it is not.
    """

    commits: Mapping[str, Mapping[int, str]]
    quiet: str = ""


def look(ledgers: Sequence[tuple[Pipeline, Books]], now_s: float) -> Standing:
    """What stands in the table that these pipelines write; its offsets table is there.

    Raises what a start of any of them would for the sake of ledger, offsets table, table id and
    settings (RM408 to RM412, RM415), but for a note of it.
    """
    keepers = [_checked(pipeline, books) for pipeline, books in ledgers]
    commits = {
        each.name: {entry.sequence: entry.commit for entry in each.entries} for each in keepers
    }
    written = [each for each in keepers if each.chain.newest is not None]
    # Where one of them commits, clean-up comes anyway.
    if not written or not all(_is_quiet(each, now_s, ledgers[0][1]) for each in written):
        return Standing(commits)
    days = min(each.age_s(now_s) for each in written) / 86400
    age = f"no entry for {days:.0f} days" if days else "log clean-up has taken all entries"
    return Standing(commits, f"{age}, which the next run writes again first")


def _is_quiet(keeper: Keeper, now_s: float, books: Books) -> bool:
    """Whether a start would write the newest entry again."""
    return keeper.recovered or is_old(keeper.age_s(now_s), books.log.retention_s())


def _checked(pipeline: Pipeline, books: Books) -> Keeper:
    """The pipeline's ledger, past the guards that a start has for it.

    A run may commit while we look: then the rest is ahead of what was read of the log.
    """
    left = _LOOKS
    while True:
        left -= 1
        table = str(pipeline.target.table)
        keeper = Keeper(pipeline.name, table, pipeline.identity, books, Silent())
        try:
            _check(pipeline, keeper)
            return keeper
        except Halt:
            if not left or not [*books.log.commits_after(keeper.chain.version)]:
                raise


def _check(pipeline: Pipeline, keeper: Keeper) -> None:
    keeper.read()
    if keeper.chain.faults:  # before the keeper notes it: that is for a start to do
        raise keeper.chain.faults[0]
    keeper.check()
    if keeper.chain.newest is not None:
        check_identity(keeper.where, keeper.chain.newest, keeper.table, pipeline.identity)
