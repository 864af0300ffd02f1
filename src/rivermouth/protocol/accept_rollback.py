"""Accepting a rollback: the entry that says so, or the reason why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rivermouth.config import Pipeline
from rivermouth.errors import OtherCluster, ResumeRefused, TopicRecreated
from rivermouth.protocol.drafts import accepting_draft
from rivermouth.protocol.entry import NEVER_ACCEPTED, Accepted, Draft, Entry
from rivermouth.protocol.guards import changed_settings, check_identity, check_source
from rivermouth.protocol.history import (
    History,
    Left,
    accepting,
    in_effect,
    kind_of,
    left_by_restore,
    telling_of,
)
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.offsets import Position
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
    # A reset leaves nothing of what was read: it takes any source, and any rule.
    if accept == "restore":
        if newest is not None:
            check_identity(history.where, newest, ledger.table, pipeline.identity)
        _check_rule_stayed(ledger, accepted.standing, pipeline)
        _check_source_stayed(ledger, accepted.standing, kafka)
    left = _left(ledger, kafka, pipeline, accepted)
    sequence = max(history.sequence, ledger.projected) + 1
    return accepting_draft(history, ledger.table, pipeline, kafka, sequence, left, accepted)


def nothing_left(history: History) -> ResumeRefused:
    """Why an entry is not written any more that was to accept what undid commits: a RESTORE has put
    them back since.
    """
    return ResumeRefused(
        "what was to be accepted is undone",
        where=history.where,
        expected="commits of this pipeline to be rolled back",
        found=f"entry {history.sequence} to be in effect",
        remedy="Start the pipeline: it goes on from that entry",
    )


def _accepted(ledger: LedgerSnapshot, accept: str) -> Accepted:
    history = ledger.history
    if history.rolled_back_by:
        newest, effective = history.rolled_back_by[-1], history.effective
        found = "a RESTORE nobody can resolve" if effective is None else kind_of(newest)
        accepted = Accepted(accept, newest.version, effective or 0)
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


def _check_source_stayed(ledger: LedgerSnapshot, standing: int, kafka: KafkaFacts) -> None:
    """Refuse to go on from a state that was read from another source than there is now: its
    offsets, which would be read again, mean other records. Where nothing is in effect, there are
    none.
    """
    if not standing:
        return
    known, pipeline = ledger.known_entries, ledger.history.pipeline
    where, reset = ledger.history.where, accepting(pipeline, "reset")
    for each in known:
        if each.sequence > standing and each.changes and each.changes.of_source:
            kinds = ", ".join(one.value for one in each.changes.kinds)
            raise ResumeRefused(
                f"entry {each.sequence} accepted a change of the source ({kinds}), and the RESTORE"
                " went back to before it",
                where=where,
                expected="a state in which that entry is in effect",
                found=f"entry {standing}",
                remedy=f"RESTORE to after that entry; or TRUNCATE, then: {reset}",
            )
    try:
        telling = telling_of(known, standing)
        if telling is not None:
            check_source(pipeline, telling, kafka.cluster, kafka.topics)
    except (OtherCluster, TopicRecreated) as changed:
        back = "Point the address back; or " if isinstance(changed, OtherCluster) else ""
        raise ResumeRefused(
            "the RESTORE went back to what was read from another source than there is now",
            where=where,
            expected=changed.expected,
            found=changed.found,
            remedy=f"{back}RESTORE to a state that was read from it; or TRUNCATE, then: {reset}",
        ) from None


def _check_rule_stayed(ledger: LedgerSnapshot, standing: int, pipeline: Pipeline) -> None:
    """Refuse to go on from rows that were made by another rule, before a reset."""
    entry = in_effect(ledger.known_entries, standing)
    if entry is None:
        return
    changed = changed_settings(entry, pipeline.identity)
    for name in sorted(changed.keys() & entry.config.keys() & NEVER_ACCEPTED.keys()):
        raise ResumeRefused(
            f"the RESTORE went back to before a change of {name}: {NEVER_ACCEPTED[name]}",
            where=ledger.history.where,
            expected=f"{name} {entry.config[name]!r}",
            found=repr(pipeline.identity.get(name)),
            remedy="Put the setting back; or TRUNCATE, then: "
            + accepting(ledger.history.pipeline, "reset"),
        )


def _left(
    ledger: LedgerSnapshot, kafka: KafkaFacts, pipeline: Pipeline, accepted: Accepted
) -> Left:
    """What the rollback left.

    Where nothing is in effect and log clean-up has taken where partitions started, they start where
    the configuration says, as after a reset.
    """
    entries = ledger.known_entries
    starts_known = bool(entries) and entries[0].sequence == 1
    if accepted.kind == "restore" and (accepted.standing or starts_known):
        # A topic that is not configured now keeps the id that the newest entry tells.
        recorded = ledger.newest.topics if ledger.newest is not None else {}
        same = partial(_is_same, kafka.cluster, {**recorded, **kafka.topics})
        left = left_by_restore(entries, accepted.standing, same)
        return left if left.position.offsets else replace(left, position=_begin(pipeline, kafka))
    return Left(_begin(pipeline, kafka))


def _begin(pipeline: Pipeline, kafka: KafkaFacts) -> Position:
    return start_positions(pipeline, None, kafka).position


def _is_same(cluster: str, topics: Mapping[str, str], entry: Entry, topic: str) -> bool:
    """Whether an entry was read from the topic of that name that there is now, as far as told."""
    same_topic = not differ(entry.topics.get(topic, ""), topics.get(topic, ""))
    return entry.cluster == cluster and same_topic
