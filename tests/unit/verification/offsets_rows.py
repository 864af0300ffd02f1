"""The rows of the offsets table that a run writes for the commits of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.ledger.entry import Commit
from tests.faults.checker.at_length import at_length
from tests.unit.verification.doubles import MemoryRows


def offsets_rows(
    commits: Sequence[Commit], bad: Mapping[int, int] | None = None
) -> list[dict[str, Any]]:
    """A row for each range of each entry of ``t.p``; every offset of a range is a record.

    The ids of topic and cluster are those that ``commit`` gives by itself. ``bad`` are the
    quarantined records of a range, by the sequence of its entry.
    """
    found = []
    for version, each in enumerate(commits):
        if "userMetadata" not in each.info:
            continue
        facts = at_length(json.loads(each.info["userMetadata"]))
        quarantined = (bad or {}).get(facts["sequence"], 0)
        for topic, number, start, until in facts["ranges"]:
            found.append(
                {
                    "sequence": facts["sequence"],
                    "topic": topic,
                    "partition": number,
                    "from_offset": start,
                    "until_offset": until,
                    "end_offset": facts.get("ends", {}).get(topic, {}).get(str(number)),
                    "commit": facts["commit"],
                    "table_version": version,
                    "table_name": "t.p",
                    "topic_id": "id",
                    "cluster_id": "cluster",
                    "records": until - start,
                    "applied": until - start - quarantined,
                    "quarantined": quarantined,
                    "skipped": 0,
                }
            )
    return found


def offsets_table(rows: Sequence[Mapping[str, Any]]) -> MemoryRows:
    """The offsets table with these rows."""
    return MemoryRows(rows, pa.Table.from_pylist([*rows]).schema)
