"""The decoded rows of a batch, whatever the format.

A decoded row has these columns:

- ``row`` STRUCT of the configured columns, null for a tombstone or a bad record
- ``key_columns`` STRUCT of the key columns (keyed shapes only): of the row or the message key
- ``_kafka`` STRUCT<topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP>, and after
  these what ``source.metadata`` asks for: ``key`` and ``headers``, as Kafka has them
- ``tombstone`` BOOLEAN, never null
- ``code`` STRING, null for a good record, else why it goes to quarantine (RM6xx)
- ``reason`` STRING, what is wrong with a record that cannot be decoded, where its format tells it
- ``key`` and ``value`` BINARY, as Kafka has them; of good records of an append null, if not asked
  for
- ``headers`` ARRAY of STRUCT<key STRING, value BINARY>, as Kafka has them, null where there are
  none; only where they are sent on (``forward_headers``)
"""

from __future__ import annotations

from collections.abc import Sequence

from rivermouth.formats.in_arrow import HEADERS, KAFKA_COLUMNS

PLACE = ("topic", "partition", "offset", "timestamp")
"""The fields of ``_kafka`` that every row has."""
PARTITION = PLACE[:2]
"""Those that name the partition of a record."""


def kafka_struct(metadata: Sequence[str]) -> str:
    """The type of ``_kafka``, with the fields that ``source.metadata`` asks for."""
    return f"STRUCT<{', '.join(f'{e}: {kafka_field(e)}' for e in (*PLACE, *metadata))}>"


def kafka_field(name: str) -> str:
    """The type of a field of ``_kafka``."""
    return {**KAFKA_COLUMNS, **HEADERS}[name]
