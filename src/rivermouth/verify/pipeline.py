"""The order of a verification: ledger, Kafka's identity, quarantine, rows, offsets table."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rivermouth.config import Config, Mode, Pipeline
from rivermouth.verify.kafka.source import Source
from rivermouth.verify.ledger.coverage import Coverage
from rivermouth.verify.ledger.entry import Place, shown
from rivermouth.verify.ledger.log import Ledger, read_ledger
from rivermouth.verify.proofs.append import WINDOW, verify_append
from rivermouth.verify.proofs.latest import BUCKET, verify_upsert
from rivermouth.verify.proofs.offsets_table import verify_offsets_table
from rivermouth.verify.proofs.quarantine import Quarantined, read_quarantine
from rivermouth.verify.proofs.replay import Progress
from rivermouth.verify.result import Findings, Kind, PipelineProof
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.batches import Rows, Unreadable
from rivermouth.verify.tables.folder import Tables


@dataclass(frozen=True)
class Bounds:
    """How much is held in memory at once: see ``append`` and ``upsert``."""

    window: int = WINDOW
    bucket: int = BUCKET


def verify_pipeline(
    config: Config,
    tables: Tables,
    pipeline: Pipeline,
    source: Source,
    progress: Progress,
    bounds: Bounds,
) -> PipelineProof:
    """Verify one pipeline. Raises SourceError where Kafka cannot be read."""
    findings = Findings(pipeline.name)
    try:
        log = tables.commits(pipeline.target.table)
    except Unreadable as fault:
        findings.add(Kind.FAULT, f"the table's log cannot be read: {fault}")
        return findings.proof()
    ledger = read_ledger(log, pipeline.name, findings)
    subject = None
    if ledger is None:
        findings.unchecked.append("there is no table yet")
    else:
        findings.entries = len(ledger.standing)
        lost = [each for entry in ledger.standing for each in entry.lost]
        findings.lost = sum(each.until - each.start for each in lost)
        findings.unchecked += [f"{each}: recorded as lost, Kafka deleted it" for each in lost]
        subject = _subject(config, pipeline, ledger, source, findings)
        try:
            subject = _verify_rows(subject, tables, progress, bounds)
        except Unreadable as fault:
            findings.add(Kind.FAULT, f"the table cannot be read: {fault}")
            findings.unchecked.append("the rows")
            subject = None
    try:
        verify_offsets_table(
            tables,
            ledger or Ledger(version=-1),
            log,
            pipeline,
            findings,
            subject,
        )
    except Unreadable as fault:
        findings.add(Kind.OFFSETS_TABLE, f"the offsets table cannot be read: {fault}")
    return findings.proof()


def _subject(
    config: Config, pipeline: Pipeline, ledger: Ledger, source: Source, findings: Findings
) -> Subject:
    coverage = Coverage(ledger.standing)
    readable = {place: (span.start, span.until) for place, span in coverage.spans.items()}
    compacted: frozenset[str] = frozenset()
    if ledger.standing:
        topics = {place[0] for place in coverage} | {*ledger.standing[-1].topics}
        identity = source.identity(topics)
        compacted = identity.compacted
        foreign = _foreign(ledger, identity.cluster, identity.topics, findings)
        readable = _readable(coverage, foreign, source, findings)
        if ledger.trimmed:
            first = ledger.standing[0].sequence
            findings.unchecked.append(f"entries before {first}: log clean-up removed them")
    neighbours = {
        topic
        for each in config.writers(pipeline.target.table)
        if each.name != pipeline.name
        for topic in each.source.topics
    }
    return Subject(
        pipeline, ledger, coverage, source, findings, readable, compacted, frozenset(neighbours)
    )


def _foreign(
    ledger: Ledger, cluster: str, topics: Mapping[str, str], findings: Findings
) -> dict[str, str]:
    """Topics that are not those of the ledger any more, and why; each is a fault."""
    foreign: dict[str, str] = {}
    recorded: dict[str, str] = {}
    for entry in ledger.standing:
        if entry.cluster != cluster:
            foreign.update(dict.fromkeys(entry.topics, f"in cluster {entry.cluster}"))
        for topic, topic_id in entry.topics.items():
            if recorded.setdefault(topic, topic_id) != topic_id:
                foreign[topic] = "recorded under two ids"
            elif topic not in topics:
                foreign.setdefault(topic, "gone from Kafka")
            elif topics[topic] != topic_id:
                foreign.setdefault(topic, f"id {topic_id}, now another topic with {topics[topic]}")
    for topic, why in sorted(foreign.items()):
        findings.add(Kind.FAULT, f"topic {topic}: {why}")
        findings.unchecked.append(f"{topic}: {why}")
    return foreign


def _readable(
    coverage: Coverage, foreign: Mapping[str, str], source: Source, findings: Findings
) -> dict[Place, tuple[int, int]]:
    """The part of each partition that Kafka can still show; the rest is unchecked."""
    ours = [place for place in coverage if place[0] not in foreign]
    lows, ends = source.lows(ours), source.ends(ours)
    readable: dict[Place, tuple[int, int]] = {}
    for place, span in coverage.spans.items():
        if place[0] in foreign:
            readable[place] = (span.until, span.until)
            continue
        start = min(max(span.start, lows[place]), span.until)
        until = max(min(span.until, ends[place]), start)
        readable[place] = (start, until)
        if start > span.start:
            findings.unchecked.append(f"{shown(place)}[{span.start},{start}): expired in Kafka")
        if until < span.until:
            lost = f"{shown(place)}[{until},{span.until})"
            findings.unchecked.append(f"{lost}: Kafka's log ends before it")
            findings.add(Kind.FAULT, f"{lost}: Kafka's log ends before it")
    return readable


def _verify_rows(
    subject: Subject, tables: Tables, progress: Progress, bounds: Bounds
) -> Subject | None:
    """Compare quarantine and table with Kafka; None where the columns do not allow it."""
    pipeline, findings = subject.pipeline, subject.findings
    table = tables.rows(pipeline.target.table, subject.ledger.version)
    _check_txn(subject, table)
    wanted = {*(each.name for each in pipeline.columns), "_kafka"}
    lacking = sorted(wanted - {*table.schema.names})
    if lacking:
        findings.add(Kind.FAULT, f"the table lacks the columns {', '.join(lacking)}")
        findings.unchecked.append("the rows")
        return None
    quarantine: Mapping[Place, Quarantined] = read_quarantine(
        tables,
        pipeline.target.table.quarantine,
        subject.ledger.standing,
        subject.coverage,
        findings,
    )
    with tempfile.TemporaryDirectory(prefix="rivermouth-verify-") as folder:
        if pipeline.target.mode is Mode.UPSERT:
            verify_upsert(subject, table, quarantine, Path(folder), progress, bounds.bucket)
        else:
            verify_append(subject, table, quarantine, Path(folder), progress, bounds.window)
    findings.records = subject.coverage.records()
    return subject


def _check_txn(subject: Subject, table: Rows) -> None:
    """The snapshot's ``txn`` outlives log clean-up: it must be the newest entry's."""
    txn = table.transaction(f"rivermouth/{subject.pipeline.name}")
    recorded = subject.ledger.recorded
    newest = recorded[-1].sequence if recorded else 0
    if txn is not None and txn != newest:
        line = f"the snapshot's txn is {txn}, the newest readable entry is {newest}"
        subject.findings.add(Kind.FAULT, line)
        if not recorded:
            subject.findings.unchecked.append("all rows: log clean-up removed every entry")
