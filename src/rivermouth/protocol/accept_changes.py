"""Accepting that the source or a setting was changed: the entry that says so. Pure."""

from __future__ import annotations

import json as json_text
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rivermouth.config import Pipeline
from rivermouth.errors import ConfigError, ResumeRefused
from rivermouth.protocol.drafts import changing_draft
from rivermouth.protocol.entry import (
    NEVER_ACCEPTED,
    Change,
    Changes,
    Draft,
    Entry,
    Move,
    accepted_changes,
)
from rivermouth.protocol.guards import changed_settings, check_ledger, check_table, to_ask_about
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.offsets import Anchor, Position, TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_positions, unread, vanished


@dataclass(frozen=True)
class ResumePlan:
    """An entry that accepts something, before it is written, and what it means."""

    draft: Draft
    lines: tuple[str, ...] = ()

    @staticmethod
    def of(newest: Entry | None, draft: Draft, kafka: KafkaFacts) -> ResumePlan:
        """The plan of an entry that follows on ``newest``."""
        if newest is None:
            return ResumePlan(draft)
        if draft.changes is None:
            return ResumePlan(draft, tuple(_other_source(newest, draft)))
        return ResumePlan(draft, tuple(consequences(newest, draft, draft.changes, kafka)))

    def as_dict(self) -> dict[str, Any]:
        """The JSON of what would be written."""
        changes = self.draft.changes
        return {
            "sequence": self.draft.sequence,
            "position": self.draft.position.as_nested(),
            "changes": None if changes is None else changes.as_dict(),
            "means": list(self.lines),
        }


def consequences(newest: Entry, draft: Draft, changes: Changes, kafka: KafkaFacts) -> list[str]:
    """What an operator must know before the entry of ``draft`` is written, a line for each fact.

    ``newest`` is the entry that it follows on.
    """
    lines = [
        f"{name} was {before!r} and is {draft.config.get(name)!r}, for records that are read from"
        f" entry {draft.sequence} on; what was read before stays as it is"
        for name, before in changes.settings.items()
    ]
    lines += _other_source(newest, draft)
    for each in changes.moved:
        lines += _moved(newest, changes, each, kafka)
    if Change.CLUSTER in changes.kinds and not any(each.now is not None for each in changes.moved):
        lines.append("all offsets are taken to mean the same records as before: verify will check")
    return lines


def _other_source(newest: Entry, draft: Draft) -> Iterator[str]:
    """From which source is read on, where that is another one than before."""
    if newest.cluster != draft.cluster:
        yield f"the cluster was {newest.cluster} and is {draft.cluster}"
    for topic, now in sorted(draft.topics.items()):
        if differ(newest.topics.get(topic, now), now):
            yield f"{topic} was the topic {newest.topics[topic]} and is {now}"


def _moved(newest: Entry, changes: Changes, move: Move, kafka: KafkaFacts) -> Iterator[str]:
    place, was, now = move.topic_partition, move.was, move.now
    found = kafka.watermarks.get(place)
    if now is None:
        yield f"{place} stood at {was:,} and is gone; if it comes back, it is read from the start"
    elif was is None:
        yield f"{place} is new and continues at {now:,}"
    elif changes.renews(place.topic):
        yield f"{place} stood at {was:,} and continues at {now:,}"
    else:
        yield (
            f"{place} stood at {was:,}, but its log was cut at {now:,}: {was - now:,} offsets that"
            " were read may hold other records now, which are read; the rows of the old ones stay"
        )
    unread = (newest.ends.get(place) or 0) - (was or 0)
    if unread > 0 and (now is None or changes.renews(place.topic)):
        yield (
            f"{place}: up to {unread:,} offsets after {was or 0:,}, which were there at the last"
            " commit, were never read and may be lost"
        )
    if found is not None and now is not None and now < found.high:
        yield (
            f"{place}: {found.high - now:,} offsets are read from there; records among them that"
            " were read before are read twice"
        )


SAME, START = "same", "start"
Offsets = str | Position
"""Where the topics of another cluster continue: ``SAME``, ``START``, or at a position."""


def logs_to_ask_about(newest: Entry | None, kafka: KafkaFacts) -> dict[TopicPartition, Anchor]:
    """As ``to_ask_about``, but only of topics that are the recorded ones."""
    if newest is None or newest.cluster != kafka.cluster:
        return {}
    changed = _changed_topics(newest, kafka)
    asked = to_ask_about(newest, kafka.epochs)
    return {each: anchor for each, anchor in asked.items() if each.topic not in changed}


def accept_changes(
    ledger: LedgerSnapshot,
    kafka: KafkaFacts,
    pipeline: Pipeline,
    accepted: Collection[Change],
    offsets: Offsets | None = None,
) -> Draft:
    """The entry that accepts the changes of these kinds: exactly those that are found now.

    ``offsets`` says where the topics of another cluster continue. Raises ResumeRefused where
    other changes are found, or where one cannot be accepted, and the Halt that applies where the
    ledger itself is not whole.
    """
    ledger.check_not_trimmed()
    check_ledger(ledger.history, ledger.txn, ledger.projected, forgotten=ledger.forgotten)
    where, newest = ledger.history.where, ledger.newest
    if newest is None:
        raise _refused(where, accepted, ())
    check_table(where, newest, ledger.table)
    settings, topics = changed_settings(newest, pipeline.identity), _changed_topics(newest, kafka)
    is_other = newest.cluster != kafka.cluster
    renewed = kafka.topics if is_other else topics
    gone, cut = _gone(newest, kafka, pipeline, renewed), _cut(newest, kafka, renewed)
    found: dict[Change, object] = {
        Change.IDENTITY: settings,
        Change.PARTITIONS: gone,
        Change.TRUNCATION: cut,
        Change.TOPIC: not is_other and topics,  # in another cluster all topics are others
        Change.CLUSTER: is_other,
    }
    kinds = tuple(each for each, what in found.items() if what)
    _check_settings(where, settings)
    if {*kinds} != {*accepted}:
        raise _refused(where, accepted, kinds)
    _check_offsets(where, newest, pipeline, is_other, offsets)
    now: dict[TopicPartition, int | None] = {**dict.fromkeys(gone), **cut}
    if is_other:
        now |= _in_other_cluster(newest, kafka, pipeline, offsets)
    else:
        now |= _first_kept(kafka, topics)
    before = newest.cluster if is_other else ""
    changes = Changes(kinds, settings, before, topics, _moves(newest, now))
    return changing_draft(ledger.history, ledger.table, pipeline, kafka, changes)


def _check_settings(where: str, changed: Iterable[str]) -> None:
    for name in changed:
        if name in NEVER_ACCEPTED:
            raise ResumeRefused(
                f"a change of {name} cannot be accepted: {NEVER_ACCEPTED[name]}",
                where=where,
                remedy="Put the setting back, or ingest under a new pipeline name and table",
            )


def _check_offsets(
    where: str, newest: Entry, pipeline: Pipeline, is_other: bool, offsets: Offsets | None
) -> None:
    """Refuse what does not say where another cluster is read on, or says it of the same one."""
    if is_other and vanished(pipeline, newest):
        raise ResumeRefused(
            "topics of the pattern are not in the other cluster",
            where=where,
            expected=f"there, too: {', '.join(vanished(pipeline, newest))}",
            remedy="Wait until the mirror has them; or list the topics that go on, by their names",
        )
    if is_other != (offsets is not None):
        need = "--offsets same, start or FILE" if is_other else "no --offsets"
        raise ResumeRefused("--offsets belongs to another cluster", where=where, expected=need)


def _gone(
    newest: Entry, kafka: KafkaFacts, pipeline: Pipeline, renewed: Collection[str]
) -> list[TopicPartition]:
    """The recorded partitions that are not there any more, or whose topic vanished unread.

    Those of ``renewed`` topics that are not read any more are gone for good: else they would go on
    at an offset of the former topic, if they are assigned again.
    """
    vanished_unread = {each.topic for each in unread(pipeline, newest)}
    return [
        each
        for each in newest.position
        if each.topic in vanished_unread
        or (each not in kafka.watermarks if kafka.tell_of(each) else each.topic in renewed)
    ]


def _cut(newest: Entry, kafka: KafkaFacts, renewed: Collection[str]) -> dict[TopicPartition, int]:
    """The ends of logs that were cut below the position."""
    cut: dict[TopicPartition, int] = {}
    for each, at in _asked(newest, kafka).items():
        if each.topic not in renewed and each in kafka.watermarks:
            end = min(kafka.truncated.get(each, at), kafka.watermarks[each].high)
            if end < at:
                cut[each] = end
    return cut


def _first_kept(kafka: KafkaFacts, topics: Collection[str]) -> dict[TopicPartition, int]:
    """Where new topics are read from: the first record that is kept, so nothing is skipped."""
    there = kafka.watermarks.items()
    return {each: found.low for each, found in there if each.topic in topics}


def _moves(newest: Entry, now: Mapping[TopicPartition, int | None]) -> tuple[Move, ...]:
    """Where each partition goes whose offsets mean other records by now, or that is gone."""
    return tuple(Move(each, newest.position.get(each), now[each]) for each in sorted(now))


def _asked(newest: Entry, kafka: KafkaFacts) -> dict[TopicPartition, int]:
    """The position of the topics that Kafka was asked for."""
    position = newest.position.offsets.items()
    return {each: at for each, at in position if kafka.tell_of(each)}


def _changed_topics(newest: Entry, kafka: KafkaFacts) -> dict[str, str]:
    recorded = {topic: newest.topics.get(topic, "") for topic in kafka.topics}
    return {topic: one for topic, one in recorded.items() if differ(one, kafka.topics[topic])}


def _in_other_cluster(
    newest: Entry, kafka: KafkaFacts, pipeline: Pipeline, offsets: Offsets | None
) -> Mapping[TopicPartition, int]:
    """Where its partitions continue; nothing where offsets mean the same records there."""
    if offsets == START:
        return start_positions(pipeline, None, kafka).position.offsets
    given = offsets.offsets if isinstance(offsets, Position) else _asked(newest, kafka)
    if isinstance(offsets, Position) and {*given} != {*kafka.watermarks}:
        raise ResumeRefused(
            "the positions are not those of all partitions",
            where=pipeline.name,
            expected=", ".join(map(str, sorted(kafka.watermarks))),
            found=", ".join(map(str, sorted(given))),
        )
    for each, at in given.items():
        found = kafka.watermarks.get(each)
        if found is not None and not found.low <= at <= found.high:
            raise ResumeRefused(
                f"{each} cannot continue at {at} in this cluster",
                where=pipeline.name,
                expected=f"an offset from {found.low} to {found.high}",
                found=str(at),
                remedy="Wait until the mirror has all records, or give other positions",
            )
    return given if isinstance(offsets, Position) else {}


def _refused(where: str, asked: Collection[Change], found: Collection[Change]) -> ResumeRefused:
    def words(kinds: Collection[Change]) -> str:
        return ",".join(each.value for each in Change if each in kinds) or "nothing"

    return ResumeRefused(
        f"{words(asked)} is not what there is to accept",
        where=where,
        expected=f"--accept {words(found)}" if found else "a change, or a pipeline with an entry",
        found=f"--accept {words(asked)}",
    )


ROLLBACKS = ("restore", "reset")
CHANGES = tuple(each.value for each in Change)
"""What an operator may accept: one of the first, or of the second also several, with commas."""


def check_accepted(accept: str, offsets: str = "") -> None:
    """Raises ConfigError for words by which nothing can be accepted, and for ``offsets`` that
    would have no effect.
    """
    if offsets and Change.CLUSTER not in accepted_changes(accept):
        raise ConfigError((f"--offsets {offsets}: only --accept cluster asks for it",))
    if accept not in ROLLBACKS and not accepted_changes(accept):
        known = f"{' or '.join(ROLLBACKS)}, or of {', '.join(CHANGES)}, with commas"
        raise ConfigError((f"--accept {accept}: write one of {known}",))


def read_offsets(where: str) -> Offsets | None:
    """Where topics of another cluster continue; None: not told. Raises ConfigError."""
    if where in ("", "same", "start"):
        return where or None
    try:
        with open(where, encoding="utf-8") as file:
            read = json_text.load(file)
        if not all(type(at) is int for each in read.values() for at in each.values()):
            raise TypeError("each offset must be a whole number")
        return Position.from_nested(read)
    except (OSError, ValueError, TypeError, AttributeError) as fault:
        line = f"--offsets {where}: write same, start, or a file of positions: {fault}"
        raise ConfigError((line,)) from fault
