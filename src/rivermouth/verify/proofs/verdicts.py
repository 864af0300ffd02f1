"""Whether records in quarantine belong there: each of them is decoded again."""

from __future__ import annotations

from functools import cached_property

from confluent_kafka import Message

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Undecodable
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.compare import decoded, decoded_key, key_part
from rivermouth.verify.proofs.entry_readers import EntryKeyReaders, EntryReaders
from rivermouth.verify.proofs.sent_topics import SentTopics
from rivermouth.verify.result import Kind, Unchecked, count
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.ports import Rows


class Verdicts:
    """Judges the quarantined records of a pipeline, one by one."""

    def __init__(self, subject: Subject, table: Rows) -> None:
        self._subject = subject
        self._schema = subject.record_schema(table.schema)
        self._columns = [each.name for each in subject.pipeline.columns]
        parts = subject.pipeline.target.key_parts
        self._keys = [(self._columns.index(each.column), each.width_us) for each in parts]
        self._topics = SentTopics(subject.ledger.effective, self._columns)
        self._untold = 0

    @cached_property
    def _readers(self) -> tuple[EntryReaders, EntryKeyReaders] | None:
        """Of values and of message keys; None where a shape has a table without the columns."""
        if not {*self._columns} <= {*self._schema.names}:
            return None
        of_values = EntryReaders(self._subject, self._schema, self._columns)
        return of_values, EntryKeyReaders(self._subject, self._schema)

    def judge(
        self, partition: Partition, message: Message, entry: int, *, too_large: bool = False
    ) -> None:
        """Add a finding where a record of that entry gives all that the table needs.

        ``too_large``: it is in quarantine because a total would not fit. In a table of totals that
        is for its proof to judge, which sees all records of the key.
        """
        if too_large and self._subject.shape.totals:
            return
        try:
            self._decode(message, entry)
        except Undecodable:
            return
        except CannotTell:
            self._untold += 1
            return
        where = f"{shown(partition)}@{message.offset()}"
        line = f"{where}: in quarantine, but the record can be decoded"
        self._subject.findings.add(Kind.QUARANTINE, line)

    def report(self) -> None:
        """Say how many records could not be judged."""
        if self._untold:
            records = count(self._untold, "record")
            line = f"{records} in quarantine: verify cannot tell what Spark makes of them"
            self._subject.findings.leave(Unchecked.VERDICTS, line, self._untold)

    def _knew_more(self, entry: int) -> bool:
        """Whether an entry was decoded with columns that are not configured any more."""
        told = self._subject.ledger.effective[entry].columns
        return not {*(told or ())} <= {*self._columns}

    def _decode(self, message: Message, entry: int) -> None:
        """Raises Undecodable where the record is bad, and CannotTell."""
        if self._readers is None:
            raise CannotTell("the table has other columns")
        if self._knew_more(entry):
            raise CannotTell("the record was decoded with columns that are not configured any more")
        readers, key_readers = self._readers
        read_key = key_readers.of(entry)
        value = message.value()
        if value is None and read_key is not None:
            key = decoded_key(read_key, message.key())
        else:
            found = decoded(readers.of(entry), value)
            self._topics.check(entry, found)
            key = tuple(key_part(found[index], width) for index, width in self._keys)
            if any(each is NOT_VERIFIABLE for each in found):
                raise CannotTell("a value")
        if any(each is None for each in key):
            raise Undecodable("a key column is null")
