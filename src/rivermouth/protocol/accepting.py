"""Accepting that the source or a setting was changed: the entry that says so. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.errors import ResumeRefused
from rivermouth.protocol.changes import NEVER_ACCEPTED, Change, Changes, Move
from rivermouth.protocol.drafts import changing_draft
from rivermouth.protocol.entry import Draft, Entry
from rivermouth.protocol.guards import (
    changed_settings,
    check_ledger,
    check_table,
    to_ask_about,
)
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.offsets import Anchor, Position, TopicPartition
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_positions
from rivermouth.protocol.vanished import unread, vanished

SAME, START = "same", "start"
Offsets = str | Position
"""Where the topics of another cluster continue: ``SAME``, ``START``, or at a position."""


@dataclass(frozen=True)
class _Found:
    """What is not as the newest entry recorded it.

    ``settings`` are their recorded values, ``topics`` the recorded ids of topics that have another
    one, ``gone`` partitions that are not there any more, ``cut`` the ends of logs that were cut
    below the position.
    """

    settings: Mapping[str, object]
    cluster: bool
    topics: Mapping[str, str]
    gone: tuple[TopicPartition, ...]
    cut: Mapping[TopicPartition, int]

    @property
    def kinds(self) -> tuple[Change, ...]:
        """The kinds of changes, in the order of ``Change``. In another cluster all is another."""
        there = {
            Change.IDENTITY: bool(self.settings),
            Change.PARTITIONS: bool(self.gone),
            Change.TRUNCATION: bool(self.cut),
            Change.TOPIC: bool(self.topics) and not self.cluster,
            Change.CLUSTER: self.cluster,
        }
        return tuple(each for each, is_there in there.items() if is_there)


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
    found = _find(newest, kafka, pipeline)
    for name in found.settings:
        if name in NEVER_ACCEPTED:
            raise ResumeRefused(
                f"a change of {name} cannot be accepted: {NEVER_ACCEPTED[name]}",
                where=where,
                remedy="Put the setting back, or ingest under a new pipeline name and table",
            )
    if {*found.kinds} != {*accepted}:
        raise _refused(where, accepted, found.kinds)
    if found.cluster and vanished(pipeline, newest):
        raise ResumeRefused(
            "topics of the pattern are not in the other cluster",
            where=where,
            expected=f"there, too: {', '.join(vanished(pipeline, newest))}",
            remedy="Wait until the mirror has them; or list the topics that go on, by their names",
        )
    if found.cluster != (offsets is not None):
        need = "--offsets same, start or FILE" if found.cluster else "no --offsets"
        raise ResumeRefused("--offsets belongs to another cluster", where=where, expected=need)
    changes = Changes(
        found.kinds,
        found.settings,
        newest.cluster if found.cluster else "",
        found.topics,
        _moves(newest, kafka, pipeline, found, offsets),
    )
    return changing_draft(ledger.history, ledger.table, pipeline, kafka, changes)


def _find(newest: Entry, kafka: KafkaFacts, pipeline: Pipeline) -> _Found:
    is_other = newest.cluster != kafka.cluster
    topics = _changed_topics(newest, kafka)
    cut: dict[TopicPartition, int] = {}
    for each, at in _asked(newest, kafka).items():
        if is_other or each.topic in topics or each not in kafka.watermarks:
            continue
        end = min(kafka.truncated.get(each, at), kafka.watermarks[each].high)
        if end < at:
            cut[each] = end
    return _Found(
        settings=changed_settings(newest, pipeline.identity),
        cluster=is_other,
        topics=topics,
        gone=(
            *(each for each in _asked(newest, kafka) if each not in kafka.watermarks),
            *_of_topics_not_read(newest, pipeline),
            *_of_other_log(newest, kafka, kafka.topics if is_other else topics),
        ),
        cut=cut,
    )


def _asked(newest: Entry, kafka: KafkaFacts) -> dict[TopicPartition, int]:
    """The position of the topics that Kafka was asked for."""
    stood = newest.position.offsets.items()
    return {each: at for each, at in stood if kafka.tell_of(each)}


def _of_other_log(newest: Entry, kafka: KafkaFacts, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions of other topics by now that are not read any more: they are gone for good.

    Else they would go on at an offset of the former topic, if they are assigned again.
    """
    return [each for each in newest.position if each.topic in topics and not kafka.tell_of(each)]


def _of_topics_not_read(newest: Entry, pipeline: Pipeline) -> list[TopicPartition]:
    """All partitions of the topics that vanished with records that were not read."""
    topics = {each.topic for each in unread(pipeline, newest)}
    return [each for each in newest.position if each.topic in topics]


def _changed_topics(newest: Entry, kafka: KafkaFacts) -> dict[str, str]:
    recorded = {topic: newest.topics.get(topic, "") for topic in kafka.topics}
    return {topic: one for topic, one in recorded.items() if differ(one, kafka.topics[topic])}


def _moves(
    newest: Entry,
    kafka: KafkaFacts,
    pipeline: Pipeline,
    found: _Found,
    offsets: Offsets | None,
) -> tuple[Move, ...]:
    """Where each partition goes whose offsets mean other records by now, or that is gone."""
    now: dict[TopicPartition, int | None] = {**dict.fromkeys(found.gone), **found.cut}
    if found.cluster:
        now |= _in_other_cluster(newest, kafka, pipeline, offsets)
    else:
        # The first record that is kept: nothing of the new topic is skipped.
        told = kafka.watermarks.items()
        now |= {each: marks.low for each, marks in told if each.topic in found.topics}
    return tuple(Move(each, newest.position.get(each), now[each]) for each in sorted(now))


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
        marks = kafka.watermarks.get(each)
        if marks is not None and not marks.low <= at <= marks.high:
            raise ResumeRefused(
                f"{each} cannot continue at {at} in this cluster",
                where=pipeline.name,
                expected=f"an offset from {marks.low} to {marks.high}",
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
