"""Accepting a rollback: the entry that says so, or the reason why not. Pure."""

from __future__ import annotations

from rivermouth.config import Pipeline
from rivermouth.errors import ResumeRefused
from rivermouth.protocol.drafts import accepting_draft
from rivermouth.protocol.entry import Accepted, Draft
from rivermouth.protocol.guards import check_identity, check_not_truncated, check_source
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Position
from rivermouth.protocol.rollback import accepting, kind_of, restored_position
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_positions


def resume(ledger: LedgerSnapshot, kafka: KafkaFacts, pipeline: Pipeline, accept: str) -> Draft:
    """The entry that accepts what rolled commits back, above all sequences that are known.

    ``accept`` is ``restore`` (go on from the restored state) or ``reset`` (the table was emptied
    or created again: start over). Raises ResumeRefused where that did not happen, and the Halt
    that applies where it cannot be gone on from.
    """
    ledger.check_not_trimmed()
    accepted = _accepted(ledger, accept)
    history, newest = ledger.history, ledger.newest
    if newest is not None:
        check_source(pipeline.name, newest, kafka.cluster, kafka.topics)
    if accept == "restore":
        if newest is not None:  # after a reset, nothing that an earlier rule made is left
            check_identity(history.where, newest, ledger.table, pipeline.identity)
        check_not_truncated(pipeline.name, newest, kafka.truncated)
    _check_source_stayed(ledger, accepted)
    position = _position(ledger, kafka, pipeline, accepted)
    sequence = max(history.sequence, ledger.projected) + 1
    return accepting_draft(history, ledger.table, pipeline, kafka, sequence, position, accepted)


def _accepted(ledger: LedgerSnapshot, accept: str) -> Accepted:
    history = ledger.history
    if history.rolled_back_by:
        newest, effective = history.rolled_back_by[-1], history.effective
        found = "a RESTORE nobody can resolve" if effective is None else kind_of(newest)
        standing = effective.sequence if effective is not None else 0
        accepted = Accepted(accept, newest.version, standing)
    else:
        created_again = ledger.newest is None and ledger.ahead
        found = "reset" if created_again else "nothing that undid commits"
        accepted = Accepted(accept, 0, 0)
    others = [each for each in history.faults if each.code != "RM411"]
    if others:
        raise others[0]
    if found != accept:
        raise ResumeRefused(
            f"there is no {accept} to accept", where=history.where, expected=accept, found=found
        )
    return accepted


def _check_source_stayed(ledger: LedgerSnapshot, accepted: Accepted) -> None:
    """Refuse to go on from a state before an accepted change of the source: its offsets, which
    would be read again, mean other records by now.
    """
    for each in ledger.known_entries:
        is_after = each.sequence > accepted.standing
        if accepted.kind == "restore" and is_after and each.changes and each.changes.of_source:
            kinds = ", ".join(one.value for one in each.changes.kinds)
            raise ResumeRefused(
                f"entry {each.sequence} accepted a change of the source ({kinds}), and the RESTORE"
                " went back to before it",
                where=ledger.history.where,
                expected="a state in which that entry is in effect",
                found=f"entry {accepted.standing}",
                remedy="RESTORE to after that entry; or TRUNCATE, then: "
                + accepting(ledger.history.pipeline, "reset"),
            )


def _position(
    ledger: LedgerSnapshot, kafka: KafkaFacts, pipeline: Pipeline, accepted: Accepted
) -> Position:
    """Where what was accepted left the table.

    Where nothing is in effect and log clean-up has taken where partitions started, they start
    where the configuration says, as after a reset.
    """
    entries = ledger.known_entries
    starts_known = bool(entries) and entries[0].sequence == 1
    if accepted.kind == "restore" and (accepted.standing or starts_known):
        return restored_position(entries, accepted.standing)
    return start_positions(pipeline, None, kafka).position
