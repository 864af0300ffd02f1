"""What a task does with its part of a batch: good rows into the table's files, bad ones apart.

It gets decoded rows (``formats.decoded``) as Arrow batches and returns one row for each file that
it wrote. Nobody sees a file before a commit names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.collector import spare_what_is_loaded
from rivermouth.write.files.file import DataFile, Files, Folder, bad, good
from rivermouth.write.files.statistics import Leaf

RETURNED = pa.schema(
    [
        ("bad", pa.bool_()),
        ("name", pa.string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("statistics", pa.string()),
        ("records", pa.string()),
    ]
)
"""A row for each file; ``records`` is a JSON list of topic, partition and number."""
RETURNED_DDL = (
    "bad BOOLEAN, name STRING, size BIGINT, modified_ms BIGINT, statistics STRING, records STRING"
)

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

Batches = Iterable[pa.RecordBatch]
Decode = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class Apart:
    """Where bad records go, and what is said of each: as of which commit, and why by its code."""

    folder: Folder
    commit: str
    pipeline: str
    sequence: int
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Written:
    """What the tasks of a batch wrote: files of good rows, and of bad ones."""

    good: tuple[DataFile, ...]
    bad: tuple[DataFile, ...]

    def there(self, folder: str) -> bool:
        """Whether the good rows' files are in the folder, whole."""
        return all(each.is_whole(Path(folder)) for each in self.good)


def task(
    folder: Folder, apart: Apart, decode: Decode | None = None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What ``mapInArrow`` is to call: it writes into ``folder``, and bad records ``apart``.

    The rows are decoded, or ``decode`` does that.
    """

    def written(batches: Batches) -> Iterator[pa.RecordBatch]:
        number = _number()
        rows, quarantine = Files(folder, number), Files(apart.folder, number)
        try:
            for batch in map(decode, batches) if decode else batches:
                yield from _returned(rows.add(*_of_table(good(batch))), bad=False)
                yield from _returned(_set_apart(quarantine, bad(batch), apart), bad=True)
            yield from _returned(rows.end(), bad=False)
            yield from _returned(quarantine.end(), bad=True)
        except BaseException:
            rows.discard()
            quarantine.discard()
            raise
        spare_what_is_loaded()

    return written


def collected(rows: Iterable[Mapping[str, object]]) -> Written:
    """What the rows say that the tasks of a batch returned."""
    found: dict[bool, list[DataFile]] = {True: [], False: []}
    for each in rows:
        counts = json.loads(str(each["records"]))
        file = DataFile(
            name=str(each["name"]),
            size=int(str(each["size"])),
            modified_ms=int(str(each["modified_ms"])),
            statistics=str(each["statistics"]),
            records={(topic, partition): n for topic, partition, n in counts},
        )
        found[bool(each["bad"])].append(file)
    return Written(tuple(found[False]), tuple(found[True]))


def _returned(files: Iterable[DataFile], *, bad: bool) -> Iterator[pa.RecordBatch]:
    for each in files:
        records = json.dumps([[*place, n] for place, n in each.records.items()])
        row = {
            "bad": bad,
            "name": each.name,
            "size": each.size,
            "modified_ms": each.modified_ms,
            "statistics": each.statistics,
            "records": records,
        }
        yield pa.RecordBatch.from_pylist([row], RETURNED)


def _of_table(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.StructArray]:
    """The configured columns and ``_kafka``, as the table has them."""
    kafka = rows.column("_kafka")
    row = rows.column("row")
    arrays = [*row.flatten(), kafka]
    fields = [*row.type, pa.field("_kafka", kafka.type)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), kafka


def _set_apart(files: Files, rows: pa.RecordBatch, apart: Apart) -> list[DataFile]:
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
    columns |= {each: kafka.field(each) for each in ("topic", "partition", "offset", "timestamp")}
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


def _number() -> int:
    """The number of the task that asks."""
    from pyspark import TaskContext  # there already, where a task runs

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
