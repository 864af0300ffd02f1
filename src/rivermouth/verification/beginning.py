"""The ledger that a verification reads: all of it, or what came after an entry in effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.verification.ledger.entry import Commits, Partition
from rivermouth.verification.ledger.log import (
    Ledger,
    note_foreign,
    read_ledger,
    read_since,
    read_since_time,
    void_since,
)
from rivermouth.verification.proved import Before, Offsets, Proved, Recording, RecordState, moment
from rivermouth.verification.result import Findings


@dataclass(frozen=True)
class Since:
    """What is left out: all before the last recorded proof, or before a time in ms since 1970."""

    time_ms: float | None = None


_FORMER = "rows from before an accepted change of the source may be at the same offsets"


@dataclass(frozen=True)
class Begun:
    """The ledger, and what was found in it; ``before``: what of it is not read again."""

    ledger: Ledger | None
    findings: Findings
    before: Before | None = None


def begin(
    log: Commits, pipeline: Pipeline, since: Since | None, known: Recording, *, strict: bool
) -> Begun:
    """Read the ledger as far as it is asked for; all of it where no part can be left out."""
    found: Ledger | str | None = None
    findings = Findings(pipeline.name, strict=strict)
    if since is not None and not pipeline.shape.since:
        found = f"the proof of the mode {pipeline.target.mode} reads all of the table"
    elif since is not None and log.versions():
        found = _since(log, pipeline, since, known, findings)
    if isinstance(found, Ledger) and found.since is not None:
        note_foreign(found, findings)
        return Begun(found, findings, Before(found.since.sequence, _proved_ms(found, known)))
    findings = Findings(pipeline.name, strict=strict)
    findings.read_all = found if isinstance(found, str) else None
    return Begun(read_ledger(log, pipeline.ledger_name, findings), findings)


def standing(log: Commits, proved: Proved, at_most: int) -> RecordState:
    """Whether a record can be built on.

    Reads the log back to the entry of the record, if that is no more than ``at_most`` commits. It
    keeps none of them.
    """
    if proved.failed_ms is not None:
        return RecordState(proved, _failed(proved.failed_ms))
    if not _is_behind(proved.former or {}, _flat(proved.position)):
        return RecordState(proved, _FORMER)
    versions = log.versions()
    since = sum(version > proved.last.version for version in versions)
    if since > at_most:
        return RecordState(proved, unread=since)
    void = void_since(log, proved.pipeline, proved.last, versions)
    return RecordState(proved, void)


def _since(
    log: Commits, pipeline: Pipeline, since: Since, known: Recording, findings: Findings
) -> Ledger | str:
    if since.time_ms is not None:
        found = read_since_time(log, pipeline.ledger_name, since.time_ms, findings)
    elif known.proved is None:
        return known.problem or "no proof is recorded"
    elif known.proved.failed_ms is not None:
        return _failed(known.proved.failed_ms)
    elif known.proved.table != str(pipeline.target.table):
        return f"the recorded proof is of the table {known.proved.table}"
    else:
        found = read_since(log, pipeline.ledger_name, known.proved.last, findings)
    return found if isinstance(found, str) else _tellable(found, pipeline, known)


def _tellable(ledger: Ledger, pipeline: Pipeline, known: Recording) -> Ledger | str:
    """The ledger, if what is due can be told from it alone."""
    if _has_moved(ledger) and not _has_passed(ledger, known):
        return _FORMER
    accepting = [each for each in ledger.effective if each.deletes]
    for entry in accepting:
        if any(each.unlisted for each in entry.deletes):
            # Those of earlier entries would excuse as many that were lost since.
            return f"entry {entry.sequence} accepts a DELETE whose rows nobody can name"
    if accepting and pipeline.target.order_by:
        # What ranks lower than a row that was deleted had no effect, and the row is not known.
        first = accepting[0].sequence
        return f"entry {first} accepts a DELETE, and the keys have an order"
    return ledger


def _failed(at_ms: int) -> str:
    return f"a verification at {moment(at_ms)} found a fault"


def _has_moved(ledger: Ledger) -> bool:
    """Whether offsets may mean other records than they did in earlier entries."""
    accepted = ledger.since.accepted if ledger.since is not None else ()
    return any(kind != "identity" for kind, _ in accepted)


def _proved_ms(ledger: Ledger, known: Recording) -> int | None:
    """When all before the ledger's beginning was proved; None where the record does not tell."""
    proved = known.proved
    if proved is None or proved.failed_ms is not None:
        return None
    return proved.at_ms if _stands(ledger, proved) else None


def _stands(ledger: Ledger, proved: Proved) -> bool:
    """Whether the entry of a record is among those in effect."""
    last = proved.last.sequence, proved.last.commit
    return any((each.sequence, each.commit) == last for each in ledger.effective)


def _has_passed(ledger: Ledger, known: Recording) -> bool:
    """Whether the record tells that no former record was where this ledger reads."""
    proved, since = known.proved, ledger.since
    if proved is None or proved.former is None or since is None or not _stands(ledger, proved):
        return False
    return _is_behind(proved.former, since.position)


def _is_behind(former: Offsets, position: Mapping[Partition, int]) -> bool:
    return all(position.get(each, 0) >= until for each, until in _flat(former).items())


def _flat(offsets: Offsets) -> dict[Partition, int]:
    return {(topic, int(n)): at for topic, found in offsets.items() for n, at in found.items()}
