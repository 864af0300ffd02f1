"""Raw Kafka rows to decoded rows: one module per format. Lazy, no action, no Spark job.

A decoded row has these columns, whatever the format:

- ``row`` STRUCT of the configured columns, null for a tombstone or a bad record
- ``key_columns`` STRUCT of the key columns (upsert only): of the row or the message key
- ``_kafka`` STRUCT<topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP>
- ``tombstone`` BOOLEAN, never null
- ``code`` STRING, null for a good record, else why it goes to quarantine (RM6xx)
- ``key`` and ``value`` BINARY, as Kafka has them
"""

from __future__ import annotations

from types import MappingProxyType

KAFKA_STRUCT = "STRUCT<topic: STRING, partition: INT, offset: BIGINT, timestamp: TIMESTAMP>"

REASONS = MappingProxyType(
    {
        "RM601": "a null value, which names no row to delete here",
        "RM602": "an empty value",
        "RM603": "the value is not one JSON object that fits the configured schema",
        "RM604": "the message key does not give the key columns",
        "RM605": "a key column is null",
    }
)
"""Why a record may go to quarantine, by code."""
