"""The decoded rows of a batch, whatever the format.

A decoded row has these columns:

- ``row`` STRUCT of the configured columns, null for a tombstone or a bad record
- ``key_columns`` STRUCT of the key columns (keyed shapes only): of the row or the message key
- ``_kafka`` STRUCT<topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP>
- ``tombstone`` BOOLEAN, never null
- ``code`` STRING, null for a good record, else why it goes to quarantine (RM6xx)
- ``reason`` STRING, what is wrong with a record that cannot be decoded, where its format tells it
- ``key`` and ``value`` BINARY, as Kafka has them; of good records of an append null, if not asked
  for
- ``headers`` ARRAY of STRUCT<key STRING, value BINARY>, as Kafka has them, null where there are
  none; only where they are sent on (``forward_headers``)
"""

from __future__ import annotations

KAFKA_STRUCT = "STRUCT<topic: STRING, partition: INT, offset: BIGINT, timestamp: TIMESTAMP>"
