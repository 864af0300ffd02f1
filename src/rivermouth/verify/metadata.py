"""What ``_kafka`` tells beside the coordinates: message keys and headers, of records and in rows.

What an entry did not tell is null in its rows: the field came later. A record without headers has
null there, and no record has an empty list. Names may repeat, values may be null, the order stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from rivermouth.verify.formats.reader import NOT_VERIFIABLE
from rivermouth.verify.kafka.headers import headers_of
from rivermouth.verify.ledger.entry import LedgerEntry
from rivermouth.verify.tables.batches import field
from rivermouth.verify.tables.ports import Unreadable


class Metadata:
    """The configured ``fields`` of ``_kafka``, by which records and rows can be compared."""

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
        told = self._entries[entry].metadata
        return tuple(_TOLD[each](message) if each in told else None for each in self.fields)

    def of_rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """What each row holds."""
        columns = (_HELD[each](field(batch, "_kafka", each)) for each in self.fields)
        return [*zip(*columns, strict=True)] if self.fields else [()] * batch.num_rows


def _key(message: Message) -> bytes | None:
    found: Any = message.key()
    return None if found is None else bytes(found)


def _headers(message: Message) -> Any:
    found = headers_of(message)
    return NOT_VERIFIABLE if found is None else tuple(found) or None


def _held_headers(values: pa.Array) -> list[Any]:
    lists = values.to_pylist()
    return [None if each is None else tuple(map(_held_header, each)) for each in lists]


def _held_header(held: Any) -> Any:
    """Name and value. What follows a NUL in a name is not compared: the client cuts names there."""
    if held is None or held["key"] is None:
        return held
    return held["key"].partition("\0")[0], held["value"]


def _held_keys(values: pa.Array) -> list[Any]:
    return list(values.to_pylist())


_TOLD = {"key": _key, "headers": _headers}
_HELD = {"key": _held_keys, "headers": _held_headers}
