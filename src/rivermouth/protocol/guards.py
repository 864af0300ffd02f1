"""Guards over what a ledger's offsets belong to: cluster, topics, partitions, table, settings.

Pure: facts in, nothing or a ``Halt`` out. All of them hold before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from rivermouth.protocol.entry import APP_PREFIX, CommitRecord, Entry, app_id
from rivermouth.protocol.history import Chain
from rivermouth.protocol.offsets import Anchor, TopicPartition, Watermarks
from rivermouth.protocol.rollback import accepting


def check_ledger(chain: Chain, txn: int, projected: int, forgotten: bool) -> None:
    """Halt where the ledger is broken, or says less than ``txn`` or the offsets table know.

    ``txn`` is that of the table's snapshot, ``projected`` the offsets table's newest
    sequence; 0 where there is none. ``forgotten``: a start has found entries undone, and log
    clean-up has taken what undid them.
    """
    if chain.faults:
        raise chain.faults[0]
    if forgotten and chain.undone_by is None:
        raise LedgerTrimmed(
            "commits were undone, and log clean-up has taken what tells which",
            where=chain.where,
            expected="the RESTORE, REPLACE or TRUNCATE in the log",
            found=f"that a start halted after entry {chain.sequence}",
            remedy=f"TRUNCATE, then: {accepting(chain.pipeline, 'reset')}",
        )
    if txn != chain.sequence:
        raise LedgerBroken(
            "the snapshot's txn is not the newest entry's",
            where=chain.where,
            expected=f"txn {chain.sequence}",
            found=f"txn {txn}",
        )
    if projected > chain.sequence:
        anew = accepting(chain.pipeline, "reset")
        raise OffsetsTableAhead(
            "the offsets table knows commits that the table's log does not",
            where=chain.where,
            expected=f"sequence {chain.sequence} or less",
            found=f"sequence {projected}",
            remedy="" if chain.newest else f"Put the table back; or, was it made anew: {anew}",
        )


def check_source(pipeline: str, newest: Entry, cluster: str, topics: Mapping[str, str]) -> None:
    """Halt where cluster or topics are not those that the ledger's offsets belong to."""
    if newest.cluster != cluster:
        raise OtherCluster(
            "the broker belongs to another cluster",
            where=pipeline,
            expected=f"cluster {newest.cluster}",
            found=f"cluster {cluster}",
        )
    for topic, recorded in newest.topics.items():
        if topic in topics and topics[topic] != recorded:
            raise TopicRecreated(
                f"topic {topic} was deleted and created again",
                where=f"{pipeline} {topic}",
                expected=f"topic id {recorded}",
                found=f"topic id {topics[topic]}",
            )


def unsure(newest: Entry, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Anchor]:
    """What to ask of partitions that have another leader epoch than when we last looked."""
    return {
        each: (offset, newest.epochs[each])
        for each, offset in newest.position.offsets.items()
        if each in newest.epochs and epochs.get(each, newest.epochs[each]) != newest.epochs[each]
    }


def check_uncut(
    pipeline: str, anchors: Mapping[TopicPartition, Anchor], cut: Mapping[TopicPartition, int]
) -> None:
    """Halt where a log was cut below the position; it may have grown past it again since."""
    for each, end in cut.items():
        offset, epoch = anchors[each]
        raise LogTruncated(
            f"the log was cut at {end}, below the position, in an unclean leader election",
            where=f"{pipeline} {each}",
            expected=f"leader epoch {epoch} to reach to {offset}",
            found=f"an end at {end}",
        )


def check_identity(pipeline: str, newest: Entry, table: str, config: Mapping[str, object]) -> None:
    """Halt where the table or an identity-bearing setting is not the recorded one."""
    if newest.table != table:
        raise TableReplaced(
            "the table was replaced",
            where=pipeline,
            expected=f"table id {newest.table}",
            found=f"table id {table}",
        )
    for name in sorted({*newest.config, *config}):
        if newest.config.get(name) != config.get(name):
            raise IdentityChanged(
                f"the setting {name} gives the pipeline its identity and has changed",
                where=pipeline,
                expected=repr(newest.config.get(name)),
                found=repr(config.get(name)),
            )


def neighbours(records: Iterable[CommitRecord], pipeline: str) -> list[Chain]:
    """The ledgers of the other pipelines that write a table, each walked whole."""
    records = tuple(records)
    apps = {app for each in records for app in each.txns if app.startswith(APP_PREFIX)}
    chains = [Chain(app.removeprefix(APP_PREFIX), "") for app in sorted(apps - {app_id(pipeline)})]
    for chain in chains:
        chain.extend(records)
    return chains


def check_alone(
    where: str, others: Iterable[Chain], cluster: str, topics: Mapping[str, str]
) -> None:
    """Halt where another pipeline's entries of one of these topics stand in the table.

    A pipeline without an entry of its own would ingest the topic again, as one does that
    was renamed. Two such pipelines in one configuration are refused anyway.
    """
    for chain in others:
        if chain.newest is None or not chain.standing or chain.newest.cluster != cluster:
            continue
        for topic in sorted({*chain.newest.topics.items()} & {*topics.items()}):
            raise IdentityChanged(
                f"the pipeline {chain.pipeline} has written topic {topic[0]} into this table",
                where=where,
                expected="one pipeline for a topic and a table, under one name for ever",
                found=f"its entry {chain.sequence}, and none of this pipeline",
                remedy=f"Name the pipeline {chain.pipeline} again, or give it another table",
            )


def check_partition(
    pipeline: str, each: TopicPartition, offset: int, marks: Watermarks | None
) -> None:
    """Halt where a partition no longer holds the next offset to read (None: it is gone)."""
    where = f"{pipeline} {each}"
    if marks is None:
        raise PartitionGone("a recorded partition is gone", where=where, expected=f"{each}")
    if marks.low > offset:
        raise RetentionLost(
            f"offsets [{offset},{marks.low}) were deleted before they were read",
            where=where,
            expected=f"a log that starts at {offset} or before",
            found=f"a start at {marks.low}",
        )
    if marks.high < offset:
        raise LogTruncated(
            "the log ends before the position",
            where=where,
            expected=f"an end at {offset} or after",
            found=f"an end at {marks.high}",
        )
