"""Tables with a row for each record: every visible record is there or in quarantine, once.

Memory: at most 16 partitions are read at once, each through a window of ``Bounds.window`` offsets
that takes about 5 bytes per offset (80 MiB for all at the default of 2^20) and the sampled rows of
that window; a quarantined record takes 17 bytes. The table's offsets wait on disk, 8 bytes a row.
So a topic of any size can be verified.

The coordinates of every row are compared. Values are compared for every row up to ``Bounds.values``
offsets, above that for every 101st offset. Where all are compared of any number, the windows have
2^14 offsets, so that at most 262,144 rows are in memory; so it is, too, once a change of the
source was accepted.

Of rows that the pipeline's own code made, the values are not compared: see ``made_rows``. Where it
may make several of one record, their number is compared by entry: see ``several_rows``. Then the
offsets of a window take 8 bytes a row in memory.
"""

from __future__ import annotations

from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.by_offset import RowsByOffset
from rivermouth.verify.proofs.compare import Comparison
from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.proofs.made_rows import LeftOut, MadeReaders
from rivermouth.verify.proofs.partition_check import PartitionCheck
from rivermouth.verify.proofs.proof import Bounds, Stored, Workspace
from rivermouth.verify.proofs.replay import replay
from rivermouth.verify.result import Unchecked, count
from rivermouth.verify.subject import Subject

_STRIDE = 101


def verify_append(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``append``."""
    made = bool(subject.pipeline.made_by)  # the values are not those of the records
    columns = [] if made else [each.name for each in subject.pipeline.columns]
    stored.require([*columns, "_kafka"])
    metadata = subject.metadata
    metadata.require(stored.table.schema)
    comparison = Comparison(columns, metadata.fields)
    plain = EntryReaders(subject, stored.table.schema, columns)
    readers, left_out = MadeReaders(subject, plain), LeftOut(subject.ledger.effective)
    total, bounds = subject.coverage.total(), workspace.bounds
    if any(map(subject.has_former, subject.coverage)):
        # Where a row of a former record stands, only its values tell that the due one is missing.
        bounds = Bounds.of_every_value()
    stride = 1 if total <= bounds.values else _STRIDE
    if stride > 1:
        line = f"values at offsets that are not a multiple of {stride}"
        subject.findings.leave(Unchecked.SAMPLED, line, total - total // stride)
    rows = RowsByOffset(subject, columns, workspace.folder, bounds.window, stride)
    rows.read(stored.table)
    checks: dict[Partition, PartitionCheck] = {}
    removed, former = 0, rows.former
    for seen in replay(subject, stored, workspace.progress):
        each = seen.partition
        if each not in checks:
            quarantined = stored.quarantine.get(each)
            checks[each] = PartitionCheck(
                subject, each, rows, quarantined, comparison, readers, left_out
            )
        if seen.messages:
            checks[each].see(seen.offsets, seen.messages)
        if seen.done:
            check = checks.pop(each)
            removed += check.finish()
            former += check.former
    if removed:
        line = f"{count(removed, 'row')}: Kafka has no such record, as after compaction"
        subject.findings.leave(Unchecked.COMPACTED, line, removed)
    if former:
        line = f"{count(former, 'row')}: from before an accepted change of the source"
        subject.findings.leave(Unchecked.FORMER, line, former)
    left_out.report(subject.findings)
    rows.several.report(subject)
    comparison.report(subject.findings)
