"""Pipelines that send: every good record is in the topic, as often as its entry promises.

What is sent before the commit (``at-least-once``) must be there, and may be there again. What is
sent after it (``at-most-once``) may lack, and may not be there twice. What a function of the user
has got, only the user can tell.

Memory: at most 16 partitions are read at once, each through a window of at most 131,072 offsets.
Values are compared as those of an append are, see ``append``; not those that own code made. What it
left out may lack: its entry tells how many records those are.
"""

from __future__ import annotations

from rivermouth.registry.formats import SENT
from rivermouth.registry.references import resolve
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.proofs.proof import Stored, Workspace
from rivermouth.verify.proofs.replay import replay
from rivermouth.verify.proofs.sent_check import SentCheck
from rivermouth.verify.proofs.sent_ids import FormerIds
from rivermouth.verify.proofs.sent_records import SentRecords
from rivermouth.verify.proofs.sent_sinks import Sinks
from rivermouth.verify.proofs.sent_topics import SentTopics
from rivermouth.verify.result import Unchecked, count
from rivermouth.verify.subject import Subject

_STRIDE = 101
_WINDOW = 1 << 17


def verify_sent(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``send``."""
    columns = [each.name for each in subject.pipeline.columns]
    topics = SentTopics(subject.ledger.effective, columns)
    if not topics.names:
        good = sum(int(seen.good.sum()) for seen in replay(subject, stored, workspace.progress))
        _in_a_function(subject, good)
        return
    stored.require(columns)
    total, bounds = subject.coverage.total(), workspace.bounds
    stride = 1 if total <= bounds.values else _STRIDE
    if stride > 1:
        line = f"values at offsets that are not a multiple of {stride}"
        subject.findings.leave(Unchecked.SAMPLED, line, total - total // stride)
    former, window = FormerIds(subject), min(bounds.window, _WINDOW)
    sent = SentRecords(subject, topics.names, workspace.folder, window, stride, former)
    schema = stored.table.schema
    sent.read(resolve(SENT)(schema, columns))
    kinds = [schema.field(each).type for each in columns]
    readers = EntryReaders(subject, schema, columns)
    sinks = Sinks(subject, sent, topics, former, readers, kinds, stride)
    checks: dict[Partition, SentCheck] = {}
    subject.findings.repeated = 0
    for seen in replay(subject, stored, workspace.progress):
        if seen.partition not in checks:
            checks[seen.partition] = SentCheck(sinks, seen.partition)
        checks[seen.partition].see(seen)
        if seen.done:
            checks.pop(seen.partition).finish()
    sinks.report()
    _in_a_function(subject, sinks.in_a_function)


def _in_a_function(subject: Subject, good: int) -> None:
    if good:
        line = f"{count(good, 'record')}: only the function knows what became of them"
        subject.findings.leave(Unchecked.SINK, line, good)
