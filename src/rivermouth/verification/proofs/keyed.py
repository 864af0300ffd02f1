"""Tables with a row for each key: the latest record of it, or the first one.

Memory: that of a ``Pairing``. A quarantined record takes 17 bytes. Every key is compared, with the
coordinates of its record and the values of all columns.

Expired records, compaction and trimmed entries may have left rows that are not verifiable: such
keys are counted as unchecked, never as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from confluent_kafka import Message

from rivermouth.verification.formats.reader import GONE, CannotTell, Undecodable
from rivermouth.verification.ledger.entry import Partition, shown
from rivermouth.verification.proofs.decoding import (
    Comparison,
    EntryReaders,
    check_key,
    decoded,
    decoded_key,
)
from rivermouth.verification.proofs.key_check import KeyCheck, Touched, table_rows
from rivermouth.verification.proofs.key_rules import (
    Change,
    Expected,
    Key,
    Rank,
    Row,
    Rule,
    UnknownKeys,
)
from rivermouth.verification.proofs.proof import Pairing, Stored, Workspace, plain, size
from rivermouth.verification.proofs.replay import Doubts, Seen, replay
from rivermouth.verification.result import Kind, Unchecked, count
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows


def verify_keyed(subject: Subject, stored: Stored, workspace: Workspace, rule: Rule) -> int:
    """What a ``Proof`` does for a shape with keys: every key has the row that ``rule`` expects.

    Returns how many good records have no row: that of another record of their key counts.
    """
    table, coverage = stored.table, subject.coverage
    columns = [each.name for each in subject.pipeline.columns]
    stored.require([*columns, "_kafka"])
    subject.metadata.require(table.schema)
    comparison = Comparison(columns, subject.metadata.fields)
    readers = EntryReaders(subject, table.schema, columns)
    keys, keyed = Pairing(subject, workspace), _Changes(subject, table)
    for seen in replay(subject, stored, workspace.progress):
        for key, change in keyed.of(seen):
            keyed.touched.add(key)
            keys.records.add(key, change, len(change.value or b"") + size(change.metadata))
    for key, row in table_rows(subject, table, columns, keyed.touched):
        keys.rows.add(key, row, size(row.values) + size(row.metadata))
    doubts = Doubts(workspace.folder / "doubts")
    check = KeyCheck(subject, comparison, readers, rule, doubts, keyed.unknown)
    for key, changes, rows in keys.by_key(list, _add):
        check.check(key, changes, [Row(*each) for each in rows])
    check.settle()
    subject.findings.earlier_keys = check.earlier
    _report(subject, check, keyed, comparison)
    good = coverage.records() - coverage.quarantined() - coverage.skipped()
    return max(0, good - check.expected - subject.erased.rows)


def _report(subject: Subject, check: KeyCheck, keyed: _Changes, comparison: Comparison) -> None:
    """Say what could not be checked."""
    findings = subject.findings
    keys = count(check.not_verifiable, "key")
    line = f"{keys}: not verifiable without records that Kafka no longer holds"
    findings.leave(Unchecked.KEYS, line, check.not_verifiable)
    keys = count(check.former, "key")
    line = f"{keys}: with rows from before an accepted change of the source"
    findings.leave(Unchecked.FORMER, line, check.former)
    line = f"{count(check.retired, 'row')}: their pipelines are no longer configured"
    findings.leave(Unchecked.RETIRED, line, check.retired)
    unknown = len(keyed.unknown.places)
    line = f"{count(unknown, 'record')}: verify cannot tell what Spark makes of their key or order"
    findings.leave(Unchecked.VALUES, line, unknown)
    comparison.report(findings)


def _add(changes: list[Change], facts: tuple[Any, ...]) -> None:
    changes.append(Change(*facts))


class _Changes:
    """Turns visible records into keyed changes."""

    def __init__(self, subject: Subject, table: Rows) -> None:
        keys, order_by = subject.pipeline.target.keys, subject.pipeline.target.order_by
        # One reader for both, so that a value is parsed once here. The other columns are read of
        # winners only, which parses those again. To decode every column of every record, and to
        # keep the values on disk, costs more, even where every record wins.
        columns = [*dict.fromkeys((*keys, *order_by)), GONE]
        self.unknown = UnknownKeys()
        self.touched = Touched()
        self._subject = subject
        self._readers = EntryReaders(subject, table.schema, columns)
        self._keys = len(keys)
        self._order = [columns.index(name) for name in order_by]

    def of(self, seen: Seen) -> Iterator[tuple[Key, Change]]:
        """The changes among the good records; one that does not decode is a finding."""
        entries = self._subject.coverage.spans[seen.partition].entries[seen.ranges]
        flags = seen.good & ~seen.skipped
        facts = zip(seen.messages, entries.tolist(), flags.tolist(), strict=True)
        for message, entry, good in facts:
            if not good:
                continue
            try:
                yield self._change(seen.partition, message, entry)
            except Undecodable as fault:
                where = f"{shown(seen.partition)}@{message.offset()}"
                line = f"{where}: not in quarantine, but verify cannot decode it: {fault}"
                self._subject.findings.add(Kind.DIFFERENT, line)
            except CannotTell:
                self.unknown.places.add((seen.partition, int(message.offset() or 0)))
                self.unknown.deletes |= message.value() is None

    def _change(self, partition: Partition, message: Message, entry: int) -> tuple[Key, Change]:
        value = self._readers.value(entry, message)
        order: tuple[Any, ...] = ()
        gone = False
        read_key = self._readers.of_keys(entry)
        if value is None and read_key is not None:
            key = decoded_key(read_key, self._readers.key(entry, message))
        else:
            found = decoded(self._readers.of(entry), value)
            key, order = found[: self._keys], tuple(found[index] for index in self._order)
            gone = found[-1] is True
        check_key(key, order)
        stamp = message.timestamp()[1] * 1000
        offset = int(message.offset() or 0)
        metadata = self._subject.metadata.of_record(entry, message)
        change = Change(entry, partition, offset, plain(order), stamp, value, metadata, gone)
        return plain(key), change


def verify_latest(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``upsert``."""
    rule = Latest(ordered=bool(subject.pipeline.target.order_by))
    subject.findings.superseded = verify_keyed(subject, stored, workspace, rule)


class Latest:
    """The newest record of a key wins. See ``Rule``.

    The entries of the ledger count in their order. An event that deletes ranks as a row does; where
    it wins, the key has no row. Inside an entry, a tombstone removes the earlier
    records of its key in its own partition; of what is left the highest rank wins. A tombstone in
    an entry deletes the row from before that entry; otherwise the winner replaces that row only if
    its rank is higher. The rank is (order_by columns, topic, partition, offset), nulls lowest. If
    the keys are not ``ordered``, the winner always replaces that row.
    """

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """See ``Rule.expected``."""
        found = Expected(None, certain)
        for entry, batch in groupby(sorted(changes, key=attrgetter("entry")), attrgetter("entry")):
            had_tombstone, changed = _left(list(batch))
            winner = max(changed, key=attrgetter("rank"), default=None)
            row = None if had_tombstone else found.row
            before = found.before
            replaces = winner is not None and not self._ordered
            known = (had_tombstone or replaces) and entry >= readable_from
            if winner is not None and (row is None or self._is_newer(winner, row)):
                before = self._before(winner, changed, row, before)
                row = None if winner.gone else winner
            found = Expected(row, found.certain or known, before=before)
        return found

    def _before(
        self,
        winner: Change,
        changed: Sequence[Change],
        row: Change | None,
        before: tuple[Change, ...],
    ) -> tuple[Change, ...]:
        """The records from which a winner has what it does not tell, the newest first.

        Those of its entry count that came after the last event that deletes, and after the row that
        stood; then that row with what it had from others, if it came after such an event, too.
        """
        floor = max((each.rank for each in changed if each.gone), default=())
        stood = row.rank if row is not None and self._ordered else ()
        others = (each for each in changed if each is not winner and not each.gone)
        newer = [each for each in others if each.rank > max(floor, stood)]
        newer.sort(key=attrgetter("rank"), reverse=True)
        stays = row is not None and (stood > floor if self._ordered else not floor)
        return (*newer, row, *before) if row is not None and stays else tuple(newer)

    def _is_newer(self, winner: Change, row: Change) -> bool:
        return not self._ordered or winner.rank > row.rank

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """See ``Rule.may_stand``: only a newer one.

        Where entries decide, a record of another partition may have come in a later one.
        """
        *_, found_in, _ = found
        *_, expected_in, _ = expected
        return found > expected or (not self._ordered and found_in != expected_in)


def _left(batch: list[Change]) -> tuple[bool, list[Change]]:
    """Whether an entry has a tombstone of the key, and its changes that none has removed."""
    last: dict[Partition, int] = {}
    for each in batch:
        if each.value is None:
            last[each.partition] = max(each.offset, last.get(each.partition, -1))
    left = [
        each
        for each in batch
        if each.value is not None and each.offset > last.get(each.partition, -1)
    ]
    return bool(last), left


def verify_first(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``insert``."""
    subject.findings.repeated = verify_keyed(subject, stored, workspace, First())


class First:
    """The first record of a key wins. See ``Rule``.

    The entries of the ledger count in their order; inside an entry the record with the lowest
    topic, partition and offset is the first one. Its row stays. Later records are repeats.
    """

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """See ``Rule.expected``: nothing that came earlier makes a key certain, it would win."""
        del readable_from
        first = min(changes, key=_place, default=None)
        return Expected(first, certain, stays=first is not None)

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """See ``Rule.may_stand``: only an earlier one.

        A record of another partition may have come in an earlier entry.
        """
        *_, found_in, found_at = found
        *_, expected_in, expected_at = expected
        earlier: bool = found_at < expected_at
        return earlier or found_in != expected_in


def _place(change: Change) -> tuple[object, ...]:
    return change.entry, change.partition, change.offset
