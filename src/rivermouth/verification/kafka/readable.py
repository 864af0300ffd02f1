"""Which part of the ledger's ranges Kafka can still show, under the recorded topic ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rivermouth.config import Topics
from rivermouth.verification.kafka.client import Identity, Source
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import NOT_TOLD, LedgerEntry, Partition, differ, shown
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings, Kind, Unchecked


@dataclass(frozen=True)
class Readable:
    """The part ``[start, until)`` of each covered partition, and the topics that Kafka compacts,
    or may compact.
    """

    ranges: dict[Partition, tuple[int, int]]
    compacted: frozenset[str] = frozenset()


def readable(
    ledger: Ledger,
    coverage: Coverage,
    source: Source,
    configured: Topics,
    findings: Findings,
) -> Readable:
    """Compare Kafka with the ledger and say what can be read. Raises SourceError.

    What cannot be read is noted as unchecked, and so is a partition that no entry covers: the next
    run reads it, or halts there. Another cluster, another topic of the same name and
    a log that ends too early are findings too. A topic that was deleted is none, unless the
    pipeline is still ``configured`` to read it and had not read all that it reads of it.
    """
    if not ledger.effective:
        return Readable({})
    topics = {partition[0] for partition in coverage} | {*ledger.effective[-1].topics}
    identity = source.identity(topics)
    other, deleted = _other_topics(ledger, identity, configured)
    for topic, why in sorted({**deleted, **other}.items()):
        if topic in other:
            findings.add(Kind.FAULT, f"topic {topic}: {why}")
            findings.leave(Unchecked.OTHER_TOPIC, f"{topic}: {why}")
        else:
            _note_deleted(topic, why, ledger.effective[-1], coverage, configured, findings)
    gone = {*other, *deleted}
    ours = [partition for partition in coverage if partition[0] not in gone]
    first, end = source.first_offsets(ours), source.end_offsets(ours)
    ranges: dict[Partition, tuple[int, int]] = {}
    for partition, span in coverage.spans.items():
        if partition[0] in gone:
            ranges[partition] = (span.until, span.until)
            continue
        start = min(max(span.start, first[partition]), span.until)
        until = max(min(span.until, end[partition]), start)
        ranges[partition] = (start, until)
        _note_expired(partition, span.start, start, findings)
        if until < span.until:
            line = f"{shown(partition)}[{until},{span.until}): Kafka's log ends before it"
            findings.leave(Unchecked.ENDED, line, span.until - until)
            findings.add(Kind.FAULT, line)
    _note_uncovered(ledger, coverage, source, configured, gone, findings)
    note_unknown_policies(identity, findings)
    return Readable(ranges, identity.thinned)


def note_unknown_policies(identity: Identity, findings: Findings) -> None:
    """Name the topics of which nobody may tell whether Kafka compacts them."""
    for topic in sorted(identity.unknown_policy):
        findings.not_told.append(f"whether Kafka compacts {topic} (DescribeConfigs)")


def _note_uncovered(
    ledger: Ledger,
    coverage: Coverage,
    source: Source,
    configured: Topics,
    gone: Collection[str],
    findings: Findings,
) -> None:
    """Name what was ever in partitions of the pipeline's topics of which no entry tells.

    Also what retention has taken of it: there a run halts.
    """
    newest = ledger.effective[-1]
    topics = [each for each in newest.topics if each not in gone and configured.take(each)]
    known = {*newest.position, *coverage}
    found = [each for each in source.partitions(topics) if configured.has(*each)]
    new = [each for each in found if each not in known]
    for partition, end in sorted(source.end_offsets(new).items()):
        line = f"{shown(partition)}[0,{end}): no entry covers it"
        findings.leave(Unchecked.UNCOVERED, line, end)


def leave_out_expired(
    ranges: dict[Partition, tuple[int, int]], source: Source, findings: Findings
) -> None:
    """Raise the starts of what expired since ``readable`` told these ranges. Raises SourceError.

    Retention goes on while a long verification reads, and a reader passes over what is gone
    without a word. So this is asked once all has been read.
    """
    some = [each for each, (start, until) in ranges.items() if start < until]
    for partition, first in source.first_offsets(some).items():
        start, until = ranges[partition]
        now = min(max(start, first), until)
        _note_expired(partition, start, now, findings)
        ranges[partition] = now, until


def _note_expired(partition: Partition, start: int, until: int, findings: Findings) -> None:
    line = f"{shown(partition)}[{start},{until}): expired in Kafka"
    findings.leave(Unchecked.EXPIRED, line, until - start)


def _note_deleted(
    topic: str,
    why: str,
    newest: LedgerEntry,
    coverage: Coverage,
    configured: Topics,
    findings: Findings,
) -> None:
    """Count what was read of a deleted topic, and what should have been read of it."""
    read = sum(span.until - span.start for each, span in coverage.spans.items() if each[0] == topic)
    findings.leave(Unchecked.DELETED, f"{topic}: {why}", read)
    unread = sum(
        max(0, end - newest.position.get(partition, end))
        for partition, end in newest.ends.items()
        if partition[0] == topic and configured.take(topic) and configured.has(*partition)
    )
    if unread:
        line = f"topic {topic}: {why}, and {unread:,} offsets of it were never read"
        findings.add(Kind.FAULT, line)


def _other_topics(
    ledger: Ledger, identity: Identity, configured: Topics
) -> tuple[dict[str, str], dict[str, str]]:
    """Topics that are not those of the ledger, and topics that are no longer there; and why.

    Under the name of one that is not configured any more there may be another topic.
    """
    other: dict[str, str] = {}
    deleted: dict[str, str] = {}
    recorded: dict[str, str] = {}
    for entry in ledger.effective:
        for topic in _accepted(entry):
            for each in (other, deleted, recorded):
                each.pop(topic, None)
        if entry.cluster != identity.cluster:
            why = f"recorded in cluster {entry.cluster}, this is cluster {identity.cluster}"
            other.update(dict.fromkeys(entry.topics, why))
        for topic, topic_id in entry.topics.items():
            now = identity.topics.get(topic)
            if now is None:
                deleted[topic] = "no longer in Kafka"
            elif differ(now, topic_id) and not configured.take(topic):
                deleted[topic] = f"no longer in Kafka, another topic has its name (id {now})"
            if differ(recorded.get(topic, ""), topic_id):
                other[topic] = f"recorded with the ids {recorded[topic]} and {topic_id}"
            elif now is not None and differ(now, topic_id):
                other.setdefault(topic, f"recorded with the id {topic_id}, its id is now {now}")
            if topic_id not in NOT_TOLD:
                recorded.setdefault(topic, topic_id)
    return {topic: why for topic, why in other.items() if topic not in deleted}, deleted


def _accepted(entry: LedgerEntry) -> Iterable[str]:
    """The topics of which an operator accepted, with this entry, that they are others."""
    if entry.changes is None:
        return ()
    return [*entry.topics] if entry.changes.cluster else entry.changes.other
