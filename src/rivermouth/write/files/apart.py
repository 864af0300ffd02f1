"""Bad records of a task: into files of the quarantine, beside the rows that it writes or folds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.decoded import PLACE
from rivermouth.write.files.file import DataFile, Files, Folder
from rivermouth.write.files.statistics import Leaf

QUARANTINE = pa.schema(
    [
        ("commit", pa.string()),
        ("pipeline", pa.string()),
        ("sequence", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("code", pa.string()),
        ("reason", pa.string()),
        ("quarantined_at", pa.timestamp("us", "UTC")),
    ]
)
"""The columns of ``warehouse.quarantine``."""
PROPERTIES = {"delta.checkpointInterval": "50"}
"""Those that a session of ours gives a table that it creates."""
_KINDS = {"string": "string", "int64": "long", "int32": "integer", "binary": "binary"}
LEAVES = tuple(Leaf((e.name,), _KINDS.get(str(e.type), "timestamp")) for e in QUARANTINE)


@dataclass(frozen=True)
class Apart:
    """Where bad records go, and what is said of each: as of which commit, and why by its code."""

    folder: Folder
    commit: str
    pipeline: str
    sequence: int
    reasons: Mapping[str, str]


def set_apart(files: Files, rows: pa.RecordBatch, apart: Apart) -> list[DataFile]:
    """Add decoded rows that are bad to ``files`` of ``apart.folder``; return those completed."""
    if not rows.num_rows:
        return []
    _make(apart.folder.path)
    kafka, codes = rows.column("_kafka"), rows.column("code")
    said = {
        "commit": apart.commit,
        "pipeline": apart.pipeline,
        "sequence": apart.sequence,
        "quarantined_at": datetime.now(timezone.utc),
    }
    reasons = pa.array([apart.reasons.get(code) for code in codes.to_pylist()], pa.string())
    if "reason" in rows.schema.names:
        reasons = pc.coalesce(rows.column("reason"), reasons)
    columns = {"key": rows.column("key"), "value": rows.column("value"), "code": codes}
    columns |= {"reason": reasons}
    columns |= {each: kafka.field(each) for each in PLACE}
    same = {
        each: pa.repeat(pa.scalar(v, QUARANTINE.field(each).type), rows.num_rows)
        for each, v in said.items()
    }
    arrays = [{**columns, **same}[each.name].cast(each.type) for each in QUARANTINE]
    return files.add(pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE), kafka)


def _make(path: str) -> None:
    """Create the quarantine if it is missing: a file in its folder would stop all who try later."""
    from deltalake import DeltaTable  # dear, and most tasks meet no bad record
    from deltalake.exceptions import CommitFailedError

    # Not the folder of the log alone: who made it may have been killed before its first commit.
    if DeltaTable.is_deltatable(path):
        return
    with suppress(CommitFailedError):  # another task was faster
        DeltaTable.create(path, QUARANTINE, mode="ignore", configuration=PROPERTIES)


def task_number() -> int:
    """The number of the task that asks."""
    from pyspark import TaskContext  # there already, where a task runs

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
