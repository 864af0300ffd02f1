"""The order of a verification: ledger, what Kafka shows, quarantine, rows, offsets table."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rivermouth.config import Config, Pipeline
from rivermouth.registry.references import resolve
from rivermouth.verify.kafka.readable import readable
from rivermouth.verify.kafka.source import Source
from rivermouth.verify.ledger.coverage import Coverage
from rivermouth.verify.ledger.log import Ledger, read_ledger
from rivermouth.verify.proofs.offsets_table import verify_offsets_table
from rivermouth.verify.proofs.proof import Bounds, Progress, Proof, Stored, Workspace
from rivermouth.verify.proofs.quarantine import read_quarantine
from rivermouth.verify.result import Findings, Kind, PipelineProof
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.ports import Rows, Tables, Unreadable


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
    counted = None
    if ledger is None:
        findings.unchecked.append("there is no table yet")
    else:
        _note_ledger(ledger, findings)
        subject = _subject(config, pipeline, ledger, source, findings)
        try:
            _verify_rows(subject, tables, progress, bounds)
            counted = subject
        except Unreadable as fault:
            findings.add(Kind.FAULT, f"the table cannot be read: {fault}")
            findings.unchecked.append("the rows")
    try:
        known = ledger or Ledger(version=-1)
        verify_offsets_table(tables, known, log, pipeline, findings, counted)
    except Unreadable as fault:
        findings.add(Kind.OFFSETS_TABLE, f"the offsets table cannot be read: {fault}")
    return findings.proof()


def _note_ledger(ledger: Ledger, findings: Findings) -> None:
    """Count the effective entries; what they record as lost and what was trimmed is unchecked."""
    findings.entries = len(ledger.effective)
    lost = [each for entry in ledger.effective for each in entry.lost]
    findings.lost = sum(each.until - each.start for each in lost)
    findings.unchecked += [f"{each}: recorded as lost, Kafka deleted it" for each in lost]


def _subject(
    config: Config, pipeline: Pipeline, ledger: Ledger, source: Source, findings: Findings
) -> Subject:
    coverage = Coverage(ledger.effective)
    shown = readable(ledger, coverage, source, findings)
    if ledger.effective and ledger.trimmed:
        first = ledger.effective[0].sequence
        findings.unchecked.append(f"entries before {first}: log clean-up removed them")
    shared = frozenset(
        topic
        for each in config.writers(pipeline.target.table)
        if each.name != pipeline.name
        for topic in each.source.topics
    )
    return Subject(
        pipeline, ledger, coverage, source, findings, shown.ranges, shown.compacted, shared
    )


def _verify_rows(subject: Subject, tables: Tables, progress: Progress, bounds: Bounds) -> None:
    """Compare quarantine and table with Kafka. Raises Unreadable and SourceError."""
    name = subject.pipeline.target.table
    table = tables.rows(name, subject.ledger.version)
    _check_txn(subject, table)
    effective = subject.ledger.effective
    quarantine = read_quarantine(
        tables, name.quarantine, effective, subject.coverage, subject.findings
    )
    verify_rows: Proof = resolve(subject.shape.proof)
    with tempfile.TemporaryDirectory(prefix="rivermouth-verify-") as folder:
        verify_rows(subject, Stored(table, quarantine), Workspace(Path(folder), bounds, progress))
    subject.findings.records = subject.coverage.records()


def _check_txn(subject: Subject, table: Rows) -> None:
    """Log clean-up does not remove the snapshot's ``txn``: it must be that of the newest entry."""
    txn = table.transaction(f"rivermouth/{subject.pipeline.name}")
    recorded = subject.ledger.recorded
    newest = recorded[-1].sequence if recorded else 0
    if txn is not None and txn != newest:
        line = f"the snapshot's txn is {txn}, the newest readable entry is {newest}"
        subject.findings.add(Kind.FAULT, line)
        if not recorded:
            subject.findings.unchecked.append("all rows: log clean-up removed every entry")
