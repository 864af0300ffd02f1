"""Guards over what a ledger's offsets belong to: cluster, topics, partitions, table, settings.

Pure: facts in, nothing or a ``Halt`` out. All of them hold before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rivermouth.errors import (
    IdentityChanged,
    LedgerBroken,
    LedgerTrimmed,
    LogTruncated,
    OffsetsTableAhead,
    OtherCluster,
    PartitionGone,
    RetentionLost,
    TableReplaced,
    TopicRecreated,
)
from rivermouth.protocol.commits import APP_PREFIX, CommitRecord, app_id
from rivermouth.protocol.entry import NEVER_ACCEPTED, Entry, topics_begun
from rivermouth.protocol.history import History, accepting
from rivermouth.protocol.kafka_facts import KafkaFacts, differ
from rivermouth.protocol.log_replay import replay
from rivermouth.protocol.offsets import Anchor, Position, TopicPartition, Watermarks


def check_ledger(history: History, txn: int, projected: int, *, forgotten: bool) -> None:
    """Halt where the ledger is broken, or says less than ``txn`` or the offsets table know.

    ``txn`` is that of the table's snapshot, ``projected`` the offsets table's newest
    sequence; 0 where there is none. ``forgotten``: a start has found entries rolled back, and log
    clean-up has taken what rolled them back.
    """
    if history.faults:
        raise history.faults[0]
    if forgotten and not history.rolled_back_by:
        raise LedgerTrimmed(
            "commits were undone, and log clean-up has taken what tells which",
            where=history.where,
            expected="the RESTORE, REPLACE or TRUNCATE in the log",
            found=f"that a start halted after entry {history.sequence}",
            remedy=f"TRUNCATE, then: {accepting(history.pipeline, 'reset')}",
        )
    if txn != history.sequence:
        raise LedgerBroken(
            "the snapshot's txn is not the newest entry's",
            where=history.where,
            expected=f"txn {history.sequence}",
            found=f"txn {txn}",
        )
    if projected > history.sequence:
        again = f"If it was created again, run: {accepting(history.pipeline, 'reset')}"
        raise OffsetsTableAhead(
            "the offsets table knows commits that the table's log does not",
            where=history.where,
            expected=f"sequence {history.sequence} or less",
            found=f"sequence {projected}",
            remedy="" if history.newest else f"Put the table back. {again}",
        )


def check_source(pipeline: str, newest: Entry, cluster: str, topics: Mapping[str, str]) -> None:
    """Halt where cluster or topics are not those that the ledger's offsets belong to."""
    if newest.cluster != cluster:
        raise OtherCluster(
            "the broker belongs to another cluster",
            where=pipeline,
            expected=f"cluster {newest.cluster}",
            found=f"cluster {cluster}",
            remedy=f"Point the address back. If the topics moved: {accepting(pipeline, 'cluster')}",
        )
    for topic, recorded in newest.topics.items():
        now = topics.get(topic, "")
        if differ(recorded, now):
            raise TopicRecreated(
                f"topic {topic} was deleted and created again",
                where=f"{pipeline} {topic}",
                expected=f"topic id {recorded}",
                found=f"topic id {topics[topic]}",
                remedy=f"To read the new topic, too: {accepting(pipeline, 'topic')}",
            )


def to_ask_about(
    newest: Entry | None, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Anchor]:
    """The partitions whose leader epoch has changed since the newest entry, with what to ask of
    each: the position, and the epoch in which the log reached to it.
    """
    if newest is None:
        return {}
    return {
        each: (offset, newest.epochs[each])
        for each, offset in newest.position.offsets.items()
        if each in newest.epochs and epochs.get(each, newest.epochs[each]) != newest.epochs[each]
    }


def check_not_truncated(
    pipeline: str, newest: Entry | None, truncated: Mapping[TopicPartition, int]
) -> None:
    """Halt where a log was truncated below the position; it may have grown past it again since.

    ``truncated`` are the ends that Kafka tells of such logs.
    """
    for each, end in truncated.items():
        epoch = newest.epochs.get(each) if newest is not None else None
        offset = newest.position.get(each) if newest is not None else None
        raise LogTruncated(
            f"the log was cut at {end}, below the position, in an unclean leader election",
            where=f"{pipeline} {each}",
            expected=f"leader epoch {epoch} to reach to {offset}",
            found=f"an end at {end}",
            remedy=_of_truncation(pipeline),
        )


def check_table(pipeline: str, newest: Entry, table: str) -> None:
    """Halt where the table is not the recorded one."""
    if newest.table != table:
        raise TableReplaced(
            "the table was replaced",
            where=pipeline,
            expected=f"table id {newest.table}",
            found=f"table id {table}",
        )


def changed_settings(newest: Entry, config: Mapping[str, object]) -> dict[str, object]:
    """The recorded values of the identity-bearing settings that have another value now."""
    names = sorted({*newest.config, *config})
    recorded = {name: newest.config.get(name) for name in names}
    return {name: value for name, value in recorded.items() if value != config.get(name)}


def check_identity(pipeline: str, newest: Entry, table: str, config: Mapping[str, object]) -> None:
    """Halt where the table or an identity-bearing setting is not the recorded one."""
    check_table(pipeline, newest, table)
    resume_by = accepting(newest.pipeline, "identity")
    for name in changed_settings(newest, config):
        raise IdentityChanged(
            f"the setting {name} gives the pipeline its identity and has changed",
            where=pipeline,
            expected=repr(newest.config.get(name)),
            found=repr(config.get(name)),
            remedy="" if name in NEVER_ACCEPTED else f"Put it back, or: {resume_by}",
        )


def neighbours(
    records: Iterable[CommitRecord], pipeline: str, known: Mapping[str, History] | None = None
) -> dict[str, History]:
    """The ledgers of the other pipelines that write a table, by name.

    ``known`` is the answer for all records before these, none if they begin the log. The history
    under the empty name is that of a pipeline without an entry.
    """
    found = dict(known or {"": History("", "")})
    for record in records:
        apps = {app for app in record.txns if app.startswith(APP_PREFIX)} - {app_id(pipeline)}
        for name in {app.removeprefix(APP_PREFIX) for app in apps} - found.keys():
            found[name] = replace(found[""], pipeline=name)
        found = {name: replay(each, [record])[0] for name, each in found.items()}
    return found


def check_alone(
    where: str,
    others: Iterable[History],
    newest: Entry | None,
    kafka: KafkaFacts,
) -> None:
    """Halt where another pipeline's entries of a new topic are in effect in the table.

    A pipeline that has no entry of it would ingest it again: one that was renamed, and one that
    takes over the topic of another. Two such pipelines in one configuration are refused anyway.
    Where the other one was assigned partitions of the topic, it may read the rest of them.
    """
    for each in others:
        if each.newest is None or each.effective == 0 or each.newest.cluster != kafka.cluster:
            continue
        for topic in _read_by_both(each.newest, newest, kafka):
            now = kafka.topics.get(topic)
            if now is None or differ(each.newest.topics.get(topic, ""), now):
                continue
            raise IdentityChanged(
                f"the pipeline {each.pipeline} has written topic {topic} into this table",
                where=where,
                expected="one ledger for a topic and a table",
                found=f"its entry {each.sequence}, and none of this pipeline",
                remedy=_other_ledger(each.pipeline, newest),
            )


def _read_by_both(other: Entry, newest: Entry | None, kafka: KafkaFacts) -> list[str]:
    """The topics of another ledger of which a partition is new to this one."""
    position = newest.position if newest is not None else Position()
    new = {each for each in kafka.watermarks if position.get(each) is None}
    single = {each.topic for each in other.position if each in new}
    return sorted(single | (topics_begun(other) - other.assigned - topics_begun(newest)))


def _other_ledger(other: str, newest: Entry | None) -> str:
    if newest is None:
        return f"If it was renamed, add: ledger: {other}. Else use another table"
    return f"Leave the topic to a pipeline with the ledger {other}, or use another table"


def check_partition(
    pipeline: str, each: TopicPartition, offset: int, watermarks: Watermarks | None
) -> None:
    """Halt where a partition no longer holds the next offset to read (None: it is gone)."""
    where = f"{pipeline} {each}"
    if watermarks is None:
        raise PartitionGone(
            "a recorded partition is gone",
            where=where,
            expected=f"{each}",
            remedy=f"Check topic and cluster. To go on: {accepting(pipeline, 'partitions')}",
        )
    if watermarks.low > offset:
        raise RetentionLost(
            f"offsets [{offset},{watermarks.low}) were deleted before they were read",
            where=where,
            expected=f"a log that starts at {offset} or before",
            found=f"a start at {watermarks.low}",
        )
    if watermarks.high < offset:
        raise LogTruncated(
            "the log ends before the position",
            where=where,
            expected=f"an end at {offset} or after",
            found=f"an end at {watermarks.high}",
            remedy=_of_truncation(pipeline),
        )


def _of_truncation(pipeline: str) -> str:
    return f"Find out what was lost. To go on: {accepting(pipeline, 'truncation')}"
