"""One pipeline under verification: its ledger, what Kafka can still show of it, the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from rivermouth.config import Pipeline
from rivermouth.config.formats import FORMATS, Format, KeyForm
from rivermouth.config.registry import resolve
from rivermouth.verification.formats.events import Told, events, paths_in_keys
from rivermouth.verification.formats.framed import (
    Schemas,
    by_number,
    unknown_here,
    without_header,
)
from rivermouth.verification.formats.projected import WHOLE, as_field, projected, with_elements
from rivermouth.verification.formats.reader import (
    FIELDS,
    NOT_VERIFIABLE,
    Reader,
    Undecodable,
    UnknownDecoder,
)
from rivermouth.verification.formats.wired import wire_schema, wired
from rivermouth.verification.kafka.client import IN_HEADER, Source, headers_of
from rivermouth.verification.ledger.coverage import Coverage, Flags, Offsets, Span
from rivermouth.verification.ledger.entry import LedgerEntry, Partition
from rivermouth.verification.ledger.erased import Erased
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings
from rivermouth.verification.tables.ports import Unreadable, row_field, schema_of


class Metadata:
    """The configured ``fields`` of ``_kafka``, by which records and rows can be compared.

    What an entry does not name is null in its rows. A record without headers has null there, and no
    record has an empty list. Names of headers may repeat, values may be null, the order stays.
    """

    def __init__(self, fields: Sequence[str], entries: Sequence[LedgerEntry]) -> None:
        self.fields = tuple(fields)
        self._entries = entries

    def require(self, schema: pa.Schema) -> None:
        """Raises Unreadable where the column ``_kafka`` of the table does not have all fields."""
        known = {each.name for each in schema.field("_kafka").type}
        lacking = [f"_kafka.{each}" for each in self.fields if each not in known]
        if lacking:
            raise Unreadable(f"it lacks the columns {', '.join(lacking)}")

    def of_record(self, entry: int, message: Message) -> tuple[Any, ...]:
        """What the row of a record must hold, where the entry of this index covers the record."""
        if not self.fields:
            return ()
        recorded = self._entries[entry].metadata
        return tuple(
            _OF_RECORD[each](message) if each in recorded else None for each in self.fields
        )

    def of_rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """What each row holds."""
        columns = (_OF_ROWS[each](row_field(batch, "_kafka", each)) for each in self.fields)
        return [*zip(*columns, strict=True)] if self.fields else [()] * batch.num_rows


def _key(message: Message) -> bytes | None:
    found: Any = message.key()
    return None if found is None else bytes(found)


def _headers(message: Message) -> Any:
    found = headers_of(message)
    return NOT_VERIFIABLE if found is None else tuple(found) or None


def _headers_of_rows(values: pa.Array) -> list[Any]:
    lists = values.to_pylist()
    return [None if each is None else tuple(map(_header_of_row, each)) for each in lists]


def _header_of_row(header: Any) -> Any:
    """Name and value. What follows a NUL in a name is not compared: the client cuts names there."""
    if header is None or header["key"] is None:
        return header
    return header["key"].partition("\0")[0], header["value"]


def _keys_of_rows(values: pa.Array) -> list[Any]:
    return list(values.to_pylist())


_OF_RECORD = {"key": _key, "headers": _headers}
_OF_ROWS = {"key": _keys_of_rows, "headers": _headers_of_rows}


Decoder = Mapping[str, Any]
"""``decoder`` of an entry: the version of what decoded its records, and its settings."""
NOWHERE = 1 << 62
"""After all offsets."""


@dataclass(frozen=True)
class Subject:
    """One pipeline under verification.

    ``readable`` is the part ``[start, until)`` of each covered partition that Kafka still holds
    under the recorded topic id; it shrinks where records expire while they are read. ``compacted``
    are the topics that Kafka compacts, or may compact. ``shared`` are the topics that other
    pipelines write, or wrote, to the same table, ``shared_parts`` single partitions of such topics.
    ``retired`` are the ranges of pipelines that wrote it and are no longer configured. ``erased``
    are rows that are gone on purpose. ``schemas`` are those of the registry.
    """

    pipeline: Pipeline
    ledger: Ledger
    coverage: Coverage
    source: Source
    findings: Findings
    readable: dict[Partition, tuple[int, int]]
    compacted: frozenset[str]
    shared: frozenset[str]
    shared_parts: frozenset[Partition]
    retired: Coverage
    erased: Erased
    schemas: Schemas | None = None

    @cached_property
    def metadata(self) -> Metadata:
        """What ``_kafka`` tells beside the coordinates."""
        return Metadata(self.pipeline.source.metadata, self.ledger.effective)

    def without_value(self, decoder: Decoder) -> str:
        """What an entry with this ``decoder`` made of records without a value: ``skip``, ``row`` or
        ``quarantine``.
        """
        skips = self.pipeline.shape.adds or "envelope" in decoder
        by_itself = "skip" if skips else "quarantine"
        return str(decoder.get("tombstones", by_itself))

    @cached_property
    def skips(self) -> Flags:
        """Which entries made no row of records without a value, by index."""
        without_key = [each.config.get("key") is None for each in self.ledger.effective]
        skip = [self.without_value(each.decoder) == "skip" for each in self.ledger.effective]
        found: Flags = np.array(skip, bool) & np.array(without_key, bool)
        return found

    @cached_property
    def with_events(self) -> Flags:
        """Which entries read events that may tell of no row, by index."""
        its = (each.decoder.get("envelope", {}) for each in self.ledger.effective)
        return np.array(["skip_when" in each for each in its], bool)

    def record_schema(self, table: pa.Schema) -> pa.Schema:
        """The types of the columns of records: those of the table, if it holds records.

        Raises Unreadable for an unknown column type.
        """
        others = self.pipeline.shape.totals or self.pipeline.made_by
        return schema_of(self.pipeline.columns) if others else table

    def reader(self, schema: pa.Schema, columns: Sequence[str], decoder: Decoder) -> Reader:
        """The checker's reader of record values, by the ``decoder`` that an entry names.

        Raises Unreadable for an unknown column type, and UnknownDecoder.
        """
        known, version, its = self.pipeline.format, decoder.get("version", 1), _settings(decoder)
        _check(its, known)
        its.pop("tombstones", None)  # values that are there are read alike
        needed, paths = its.pop("not_null", ()), its.pop("from", None)
        envelope, wires, each = its.pop("envelope", None), its.pop("as", {}), its.pop("each", None)
        make = partial(self._of_format, known, version, each == WHOLE)
        written = wire_schema(schema, wires)
        required = [columns.index(each) for each in needed if each in columns]
        if envelope is not None:
            removes = self.pipeline.shape.keyed and its.pop("on_delete", None) is None
            told, required = self._told(envelope, paths, needed, its, removes=removes), []
            read = events(make, written, columns, told, its)
        elif paths is None:
            read = make(written, columns, its)
        else:
            read = projected(make, written, columns, paths, its)
            if each is not None and its.get("on_empty") is None:
                read = with_elements(read)
        read = _filled(read, required) if required else read
        return wired(read, schema, columns, wires, its) if wires else read

    def _told(
        self,
        envelope: Mapping[str, Any],
        paths: Mapping[str, Any] | None,
        needed: Sequence[str],
        its: Mapping[str, Any],
        *,
        removes: bool,
    ) -> Told:
        shape, target = self.pipeline.shape, self.pipeline.target
        empty, keys = its.get("on_empty") == "null", target.keys if shape.keyed else ()
        return Told(envelope, paths or {}, needed, target.order_by, keys, removes, empty)

    def _of_format(
        self,
        known: Format,
        version: Any,
        whole: bool,
        schema: pa.Schema,
        columns: Sequence[str],
        its: dict[str, Any],
    ) -> Reader:
        framing = its.pop("framing", None)
        if framing not in (None, "confluent", IN_HEADER):
            raise UnknownDecoder(f"framing {framing}")
        if framing is None or known.schema_text is None:
            read = _reader(known, version, its, schema, columns)
            read = as_field(read) if whole else read
            return read if framing is None else without_header(read)

        def make(text: str) -> Reader:
            of_one = {**its, "schema_file": text, "framing": framing}
            return _reader(known, version, of_one, schema, columns)

        return by_number(make, self.schemas or unknown_here)

    def key_reader(self, schema: pa.Schema, name: str | None, decoder: Decoder) -> Reader | None:
        """Reads the key columns out of message keys of the form ``name``; None where it is None.

        Raises Unreadable where it is not known, and UnknownDecoder.
        """
        if name is None:
            return None
        if name not in FORMATS.keys:
            raise Unreadable(f"verify does not know message keys of the form {name}")
        known, own = FORMATS.keys[name], self.pipeline.format.key
        _check(_settings(decoder), self.pipeline.format)
        its = decoder if known == own else decoder.get("key", {})
        of_keys = {each: decoder[each] for each in decoder.keys() & {"lenient", "timestamps"}}
        keys, version = self.pipeline.target.keys, its.get("version", 1)

        def make(schema: pa.Schema, columns: Sequence[str], more: dict[str, Any]) -> Reader:
            def read(text: str) -> Reader:
                of_one = {"schema_file": text, "framing": "confluent"} if known.framed else {}
                return _reader(known, version, {**of_keys, **more, **of_one}, schema, columns)

            return by_number(read, self.schemas or unknown_here) if known.framed else read("")

        envelope, paths = decoder.get("envelope"), decoder.get("from", {})
        if envelope is None or known.single:
            return make(schema, keys, {})
        return projected(make, schema, keys, paths_in_keys(envelope, paths, keys), {})

    @cached_property
    def removed_changes(self) -> int:
        """How many accepted changes may have left rows of which log clean-up took all ranges.

        None of a part: it begins behind all rows of former records, see ``beginning``.
        """
        if not self.ledger.effective or self.ledger.since is not None:
            return 0
        first, newest = self.ledger.effective[0], self.ledger.effective[-1]
        moved = {at for kind, at in newest.accepted if kind != "identity"}
        return sum(at < first.sequence for at in moved)

    def is_shared(self, partition: Partition) -> bool:
        """Whether the rows of a partition are those of another configured pipeline."""
        return partition[0] in self.shared or partition in self.shared_parts

    def begins(self, partition: Partition) -> int:
        """The first offset of a partition that is verified; rows before it are not looked at.

        0 where all is verified.
        """
        since = self.ledger.since
        if since is None:
            return 0
        return since.position.get(partition, 0) if partition[0] in self._topics else NOWHERE

    @cached_property
    def readable_from(self) -> int:
        """The index of the entry from which on Kafka still holds every record.

        Ask once all has been read: ``readable`` may shrink before.
        """
        found = self.coverage.former.newest() + 1
        for partition, span in self.coverage.spans.items():
            start, until = self.readable[partition]
            lost = span.entries[(span.starts < start) | (span.untils > until)]
            found = max(found, int(lost.max()) + 1 if len(lost) else 0)
        return found

    @cached_property
    def _topics(self) -> frozenset[str]:
        """The topics of the effective entries."""
        return frozenset(topic for each in self.ledger.effective for topic in each.topics)

    def has_former(self, partition: Partition) -> bool:
        """Whether any offset of a partition may mean a record from before an accepted change."""
        return self.removed_changes > 0 or partition in self.coverage.former

    def may_be_former(self, partition: Partition, offset: int) -> bool:
        """Whether an offset may mean a record from before an accepted change, too."""
        return self.removed_changes > 0 or self.coverage.former.covers(partition, offset)

    def before_ledger(self, partition: Partition, offset: int) -> bool:
        """Whether log clean-up removed the entry that this offset belongs to."""
        if not self.ledger.trimmed or not self.ledger.effective:
            return False
        if not any(partition[0] in entry.topics for entry in self.ledger.effective):
            return True  # a pipeline of which no entry is left may have written it
        newest = self.ledger.effective[-1]
        if partition[0] in newest.assigned and partition not in newest.position:
            return True  # so may it where this one was assigned other partitions of the topic
        if self.removed_changes:
            return True  # it may be one of an earlier topic of that name
        span = self.coverage.spans.get(partition)
        start = span.start if span else self.ledger.effective[0].position.get(partition, 0)
        return offset < start

    def not_verifiable(self, partition: Partition, offset: int) -> bool:
        """Whether neither Kafka nor the ledger can say anything about an offset any more."""
        if self.before_ledger(partition, offset):
            return True
        if partition not in self.readable:
            return False
        start, until = self.readable[partition]
        span = self.coverage.spans[partition]
        return span.start <= offset < span.until and not start <= offset < until

    def countable(self, partition: Partition, span: Span, index: int) -> bool:
        """Whether Kafka still shows all records that a range had when it was first read.

        Ask once they have been counted.
        """
        start, until = self.readable[partition]
        inside = start <= span.starts[index] and span.untils[index] <= until
        if not (inside and span.disjoint):
            return False
        return partition[0] not in self.compacted or span.is_full(index)

    def unexplained(self, partition: Partition, offsets: Offsets) -> Flags:
        """At which of the offsets without a visible record compaction has removed none.

        It keeps the offset of no record: one that is still there was aborted. Raises SourceError.
        """
        if partition[0] not in self.compacted or not len(offsets):
            return np.ones(len(offsets), bool)
        return np.isin(offsets, [*self.source.existing(partition, offsets.tolist())])


def _reader(
    known: Format | KeyForm,
    version: Any,
    decoder: Decoder,
    schema: pa.Schema,
    columns: Sequence[str],
) -> Reader:
    if version != known.version:
        raise UnknownDecoder(f"version {version} of {known.name}")
    try:
        made: Reader = resolve(known.reader)(schema, columns, decoder)
        return made
    except Undecodable as fault:
        raise Unreadable(f"verify cannot read {', '.join(columns)}: {fault}") from fault


def _filled(read: Reader, required: Sequence[int]) -> Reader:
    """A reader to which a record is bad that lacks a value in one of these columns."""

    def read_filled(value: bytes) -> tuple[Any, ...]:
        row = read(value)
        if any(row[each] is None for each in required):
            raise Undecodable("a column that is NOT NULL is null")
        return row

    return read_filled


def _check(settings: Mapping[str, Any], known: Format) -> None:
    """Raises UnknownDecoder for a setting that the format does not have."""
    every = {*known.settings, FIELDS, "not_null", "tombstones"}
    every |= {"envelope", "on_delete", "as", "each"} if "from" in known.settings else set()
    unknown = sorted(settings.keys() - every)
    if unknown:
        raise UnknownDecoder(f"the setting {unknown[0]}")


def _settings(decoder: Decoder) -> dict[str, Any]:
    return {each: decoder[each] for each in decoder.keys() - {"version", "key"}}
