"""Tables of totals: every key has the totals of all records that were added to it.

All records of all entries are added up again, by key. A sum, a count, a least and a greatest value
must be the same; an approximate number of distinct values must be within six standard errors of
the exact one, see ``distinct``. The sketch beside it is not read.

A row does not say which records were added to it. So where some of them can no longer be read, no
total can be compared: its key is counted as unchecked. Only what can never be is called wrong then,
for example fewer records than Kafka still shows.

Memory: that of a ``Pairing``, where the records of one key and one entry count as one; and at most
500,000 hashes of values, and one key's numbers of distinct values, 512 KiB each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rivermouth.verification.proofs.measures import Metric
from rivermouth.verification.proofs.proof import Pairing, Stored, Workspace, size
from rivermouth.verification.proofs.replay import replay
from rivermouth.verification.proofs.total_check import (
    KeyTotals,
    Knowledge,
    TotalCheck,
    TotalRecords,
)
from rivermouth.verification.result import Unchecked, count
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import tuples


def verify_totals(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``aggregate``."""
    target = subject.pipeline.target
    schema = subject.record_schema(stored.table.schema)
    metrics = [
        Metric(
            each.name,
            each.function,
            each.column,
            None if each.column is None else schema.field(each.column).type,
        )
        for each in target.metrics
    ]
    keys, names = [each.name for each in target.key_parts], [each.name for each in metrics]
    stored.require([*keys, *names])
    kinds = [stored.table.schema.field(each).type for each in (*keys, *names)]
    by_key = Pairing(subject, workspace)
    records = TotalRecords(subject, schema, metrics, by_key.records)
    for seen in replay(subject, stored, workspace.progress):
        records.see(seen, stored.quarantined(seen.partition))
    records.flush()
    for batch in stored.table.batches([*keys, *names]):
        for key, values in zip(tuples(batch, keys), tuples(batch, names), strict=True):
            by_key.rows.add(key, values, size(values))
    reasons = [*_unread(subject)]
    some = not any(each.deletes for each in subject.ledger.effective)
    knowledge = Knowledge(not reasons, some, not records.unknown, not records.unjudged)
    check = TotalCheck(subject, metrics, kinds, knowledge)
    for key, totals, rows in by_key.by_key(partial(KeyTotals, metrics), KeyTotals.add):
        check.check(key, totals, rows)
    _report(subject, check, records, reasons)


def _unread(subject: Subject) -> Iterator[str]:
    """Why not all that was added can be read any more; nothing where it can."""
    ledger, coverage = subject.ledger, subject.coverage
    if ledger.trimmed:
        yield "log clean-up removed entries"
    if coverage.former.newest() >= 0:
        yield "an operator accepted a change of the source"
    if subject.readable_from > coverage.former.newest() + 1:
        entry = ledger.effective[subject.readable_from - 1].sequence
        yield f"Kafka no longer holds all records of the entries up to {entry}"
    thinned = (each for each, span in coverage.spans.items() if not span.all_full())
    topics = sorted({topic for topic, _ in thinned} & subject.compacted)
    if topics:
        yield f"compaction may have removed records of {', '.join(topics)}"
    if subject.shared or ledger.neighbours:
        yield "other pipelines add to the same rows"
    if any(each.deletes for each in ledger.effective):
        yield "rows were deleted on purpose"


def _report(
    subject: Subject, check: TotalCheck, records: TotalRecords, reasons: Sequence[str]
) -> None:
    """Say what could not be checked."""
    findings = subject.findings
    line = f"{count(records.unknown, 'record')}: verify cannot tell what Spark makes of their key"
    findings.leave(Unchecked.VALUES, line, records.unknown)
    why = "; ".join(reasons) or "records of unknown keys may have been added"
    line = f"{count(check.keys, 'key')}: the totals cannot be compared: {why}"
    findings.leave(Unchecked.KEYS, line, check.keys)
    line = f"{count(check.values, 'total')}: verify cannot tell what Spark makes of a value"
    findings.leave(Unchecked.VALUES, line, check.values)
    judged = count(check.verdicts, "record")
    line = f"{judged} in quarantine as too large: nobody can tell whether the totals would fit"
    findings.leave(Unchecked.VERDICTS, line, check.verdicts)
