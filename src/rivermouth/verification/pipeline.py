"""The order of a verification: ledger, what Kafka shows, quarantine, rows, offsets table."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rivermouth.config import Config, Pipeline
from rivermouth.config.formats import FORMATS, Formats
from rivermouth.config.registry import SHAPES, Shapes, resolve
from rivermouth.verification.beginning import Since, begin
from rivermouth.verification.formats.framed import Schemas
from rivermouth.verification.kafka.client import KafkaSource, Source
from rivermouth.verification.kafka.readable import readable
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import LedgerEntry, Partition
from rivermouth.verification.ledger.erased import Erased
from rivermouth.verification.ledger.log import Ledger, place_of
from rivermouth.verification.proofs.offsets_table import Allowed, verify_offsets_table
from rivermouth.verification.proofs.proof import Bounds, Progress, Proof, Stored, Workspace
from rivermouth.verification.proofs.quarantine import read_quarantine
from rivermouth.verification.proved import Before, Offsets, Reach, Recording
from rivermouth.verification.recording import Attempt, Proofs
from rivermouth.verification.result import Findings, Kind, PipelineProof, Unchecked
from rivermouth.verification.sharing import Prove
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows, Tables, Unreadable


def verify_pipeline(
    config: Config,
    tables: Tables,
    pipeline: Pipeline,
    source: Source,
    progress: Progress,
    bounds: Bounds,
    *,
    strict: bool = False,
    since: Since | None = None,
    known: Recording | None = None,
    schemas: Schemas | None = None,
) -> PipelineProof:
    """Verify one pipeline, from ``since`` on (None: all); ``known`` is on record of it.

    Raises SourceError where Kafka cannot be read.
    """
    try:
        log = tables.commits(pipeline.target.table)
    except Unreadable as fault:
        findings = Findings(pipeline.name, strict=strict)
        findings.add(Kind.FAULT, f"the table's log cannot be read: {fault}")
        return findings.proof()
    begun = begin(log, pipeline, since, known or Recording(), strict=strict)
    ledger, findings = begun.ledger, begun.findings
    counted = None
    if ledger is None:
        findings.leave(Unchecked.TABLE, "there is no table yet")
    else:
        _note_ledger(ledger, findings)
        subject = _subject(config, pipeline, ledger, source, findings, schemas)
        try:
            _verify_rows(subject, tables, progress, bounds)
            counted = subject
        except Unreadable as fault:
            findings.add(Kind.FAULT, f"the table cannot be read: {fault}")
            findings.leave(Unchecked.TABLE, "the rows")
    try:
        whole = ledger or Ledger(version=-1)
        allowed = Allowed.by(config)
        verify_offsets_table(tables, whole, log, pipeline, findings, counted, allowed)
    except Unreadable as fault:
        findings.add(Kind.OFFSETS_TABLE, f"the offsets table cannot be read: {fault}")
    findings.reach = _reach(ledger, counted, begun.before, findings.earlier_keys)
    return findings.proof()


def _reach(
    ledger: Ledger | None, subject: Subject | None, before: Before | None, keys: int
) -> Reach | None:
    """Which entries were verified; None where there is none."""
    if ledger is None or not ledger.effective:
        return None
    first, last = ledger.effective[0], ledger.effective[-1]
    left_out = None if before is None else replace(before, keys=keys)
    former = None if subject is None or before is not None else _former(ledger, subject.coverage)
    return Reach(first.sequence, place_of(last), _nested(last.position), left_out, former)


def _former(ledger: Ledger, coverage: Coverage) -> Offsets | None:
    """See ``Reach``; an accepted change that log clean-up has taken does not tell it."""
    known = {each.sequence for each in ledger.effective if each.changes is not None}
    accepted = ledger.effective[-1].accepted
    if any(kind != "identity" and sequence not in known for kind, sequence in accepted):
        return None
    return _nested(coverage.former.ends())


def _nested(offsets: Mapping[Partition, int]) -> Offsets:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = offset
    return found


def _note_ledger(ledger: Ledger, findings: Findings) -> None:
    """Count the effective entries; what they record as lost and what was trimmed is unchecked."""
    findings.entries = len(ledger.covered)
    lost = [each for entry in ledger.effective for each in entry.lost]
    findings.lost = sum(each.until - each.start for each in lost)
    newest = ledger.effective[-1].accepted if ledger.effective else ()
    findings.accepted = [f"{kind}, in entry {sequence}" for kind, sequence in newest]
    for each in lost:
        line = f"{each}: recorded as lost, Kafka deleted it"
        findings.leave(Unchecked.LOST, line, each.until - each.start)


def _subject(
    config: Config,
    pipeline: Pipeline,
    ledger: Ledger,
    source: Source,
    findings: Findings,
    schemas: Schemas | None,
) -> Subject:
    coverage = Coverage(ledger.effective, trimmed=ledger.trimmed)
    shown = readable(ledger, coverage, source, pipeline.source.topics, findings)
    if ledger.effective and ledger.trimmed and ledger.since is None:
        first = ledger.effective[0].sequence
        line = f"entries before {first}: log clean-up removed them"
        findings.leave(Unchecked.ENTRIES, line, first - 1)
    shared, parts, retired = _neighbours(config, pipeline, ledger)
    return Subject(
        pipeline,
        ledger,
        coverage,
        source,
        findings,
        shown.ranges,
        shown.compacted,
        shared,
        parts,
        retired,
        Erased(ledger, coverage, findings),
        schemas,
    )


def _neighbours(
    config: Config, pipeline: Pipeline, ledger: Ledger
) -> tuple[frozenset[str], frozenset[Partition], Coverage]:
    """What other configured pipelines of the table read, or read once: topics, and partitions of
    topics that this one reads, too; and the ranges of pipelines that are no longer configured.
    """
    writers = {each.ledger_name: each for each in config.writers(pipeline.target.table)}
    writers.pop(pipeline.ledger_name, None)
    shared = {topic for each in writers.values() for topic in each.source.topics}
    parts = {
        (topic, number)
        for each in writers.values()
        for topic, numbers in each.source.topics.assigned.items()
        for number in numbers
    }
    gone: list[LedgerEntry] = []
    for name, entries in ledger.neighbours.items():
        if name in writers:
            shared |= {topic for each in entries for topic in each.topics}
            parts |= {partition for each in entries for partition in each.position}
        else:
            gone += entries
    # What this pipeline has read itself is its own, whoever else reads it.
    own = {topic for each in ledger.effective for topic in each.topics}
    topics = pipeline.source.topics
    theirs = frozenset(each for each in shared - own if not topics.take(each))
    read = {partition for each in ledger.effective for partition in each.position}
    parts = {each for each in parts - read if not (topics.take(each[0]) and topics.has(*each))}
    return theirs, frozenset(parts), Coverage(gone, trimmed=ledger.trimmed)


def _verify_rows(subject: Subject, tables: Tables, progress: Progress, bounds: Bounds) -> None:
    """Compare quarantine and table with Kafka. Raises Unreadable and SourceError."""
    name = subject.pipeline.target.table
    table = tables.rows(name, subject.ledger.version)
    _check_txn(subject, table)
    quarantine = read_quarantine(
        tables, name.quarantine, subject.ledger, subject.coverage, subject.findings
    )
    verify_rows: Proof = resolve(subject.pipeline.shape.proof)
    with tempfile.TemporaryDirectory(prefix="rivermouth-verify-") as folder:
        verify_rows(subject, Stored(table, quarantine), Workspace(Path(folder), bounds, progress))
    subject.findings.records = subject.coverage.records()
    subject.findings.skipped = subject.coverage.skipped()
    subject.erased.report(subject.findings)


def _check_txn(subject: Subject, table: Rows) -> None:
    """Log clean-up does not remove the snapshot's ``txn``: it must be that of the newest entry."""
    txn = table.transaction(f"rivermouth/{subject.pipeline.ledger_name}")
    recorded = subject.ledger.recorded
    newest = recorded[-1].sequence if recorded else 0
    if txn is not None and txn != newest:
        line = f"the snapshot's txn is {txn}, the newest readable entry is {newest}"
        subject.findings.add(Kind.FAULT, line)
        if not recorded:
            left = "all rows: log clean-up removed every entry"
            subject.findings.leave(Unchecked.ENTRIES, left, txn)


@dataclass(frozen=True)
class Checker:
    """``options`` are those of the Kafka client, with secrets in clear text; else see ``verify``.

    It can be pickled where its ``tables``, ``proofs`` and ``schemas`` can, and ``config`` holds no
    secret. ``formats`` and ``shapes`` are what is registered where it was made.
    """

    config: Config
    options: Mapping[str, str] = field(repr=False)
    tables: Tables
    bounds: Bounds
    strict: bool
    since: Since | None
    proofs: Proofs | None
    schemas: Schemas | None = None
    formats: Formats = field(default_factory=lambda: FORMATS)
    shapes: Shapes = field(default_factory=lambda: SHAPES)

    def open(self) -> Prove:
        """Connect to Kafka; the client serves all pipelines that the answer is called for."""
        FORMATS.by_name.update(self.formats.by_name)
        FORMATS.plain_keys.update(self.formats.plain_keys)
        SHAPES.by_name.update(self.shapes.by_name)
        return partial(self._attempt, KafkaSource(self.options))

    def _attempt(self, source: Source, name: str, progress: Progress) -> Attempt:
        pipeline, began = self.config.pipelines[name], time.time()
        known = Recording() if self.proofs is None else self.proofs.read(pipeline.ledger_name)
        proof = verify_pipeline(
            self.config,
            self.tables,
            pipeline,
            source,
            progress,
            self.bounds,
            strict=self.strict,
            since=self.since,
            known=known,
            schemas=self.schemas,
        )
        return Attempt(proof, known, round(began * 1000), round(time.time() * 1000))
