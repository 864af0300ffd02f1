"""Whether a table may be maintained now, and what its log tells of its pipelines. Only looks.

Maintenance commits, too, and commits bring on checkpoints and with them log clean-up. So it
leaves alone what a start would halt at, and what has been quiet for so long that the next start
owes a ledger heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.operate.looking import look
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.reading import read_ledger


@dataclass(frozen=True)
class TableEntries:
    """The entries at the end of the log of one table, as far as a start reads it.

    ``commits`` are their commit ids, by pipeline and sequence; ``quiet`` says why the table is to
    be left alone, and is empty where it is not.
    """

    commits: Mapping[str, Mapping[int, str]]
    quiet: str = ""


def maintainable(ledgers: Sequence[tuple[Pipeline, LedgerStore]], now_s: float) -> TableEntries:
    """The newest entries of the table that these pipelines write; its offsets table is there.

    Raises the Halt at which a start of any of them would stop for the sake of ledger, offsets
    table, table id and settings (RM408 to RM412, RM415).
    """
    found = [_passed(_looked(pipeline, store, now_s)) for pipeline, store in ledgers]
    commits = {
        each.history.pipeline: {entry.sequence: entry.commit for entry in each.known_entries}
        for each in found
    }
    written = [each for each in found if each.newest is not None]
    strange = [each.pipeline for ledger in found for each in ledger.others]
    if not written and strange:  # clean-up would take what keeps a renamed pipeline from starting
        return TableEntries(commits, f"its entries are of the ledger {strange[0]}, see RM408")
    # Where one of them commits, clean-up comes anyway.
    if not written or not all(_is_quiet(each, now_s) for each in written):
        return TableEntries(commits)
    days = min(each.age_s(now_s) for each in written) / 86400
    age = f"no entry for {days:.0f} days" if days else "log clean-up has taken all entries"
    return TableEntries(commits, f"{age}, which the next run writes again first")


def _looked(pipeline: Pipeline, store: LedgerStore, now_s: float) -> Assessment:
    ledger = read_ledger(store, pipeline)
    return look(store, pipeline, ledger, lambda each: assess(each, None, pipeline, now_s))


def _passed(found: Assessment) -> LedgerSnapshot:
    if found.halt is not None:
        raise found.halt
    return found.ledger


def _is_quiet(ledger: LedgerSnapshot, now_s: float) -> bool:
    """Whether a start would owe a heartbeat for the age of the newest entry."""
    return ledger.history.recovered is not None or ledger.is_old(now_s)
