"""The first commit of a table that we make ourselves."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from rivermouth.warehouse.delta.actions import Commit

Schema = Mapping[str, Any]
"""That of a table, in Delta's JSON."""


def creation(
    schema: Schema,
    properties: Mapping[str, str],
    features: Sequence[str] = (),
    writers: Sequence[str] = (),
    partitions: Sequence[str] = (),
) -> Commit:
    """It. ``features`` are those that readers need, too, and ``writers`` those of writers alone.

    Without any the oldest protocol will do.
    """
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": compact(schema),
        "partitionColumns": [*partitions],
        "configuration": dict(properties),
        "createdTime": int(time.time() * 1000),
    }
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features or writers:
        protocol = {"minReaderVersion": 3 if features else 1, "minWriterVersion": 7}
        protocol |= {"readerFeatures": [*features]} if features else {}
        protocol["writerFeatures"] = [*features, *writers, "invariants", "appendOnly"]
    return Commit(
        "CREATE TABLE",
        parameters={
            "partitionBy": compact([*partitions]),
            "clusterBy": "[]",
            "isManaged": "false",
            "properties": compact(dict(properties)),
        },
        blind=True,
        definition=({"metaData": metadata}, {"protocol": protocol}),
    )


def compact(value: object) -> str:
    """JSON as Delta writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
