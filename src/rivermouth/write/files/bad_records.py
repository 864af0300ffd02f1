"""Bad records of a task: into files of the quarantine, while it writes the good ones.

Where own code is between decoding and writing, each task reports its counts and files in a folder,
which the driver reads. Each attempt at a task writes a report of its own, at its end. An attempt
that failed after that leaves one, too: of the attempts at a task one counts.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rivermouth.config.source import PLACE
from rivermouth.debug import reach
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.ways import Definition
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import schema_of
from rivermouth.warehouse.delta.creation import creation
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.statistics import Leaf, leaves_of, partitions_of
from rivermouth.warehouse.quarantine import COLUMNS
from rivermouth.write.files.counting import Counted, bad, other_records
from rivermouth.write.files.data_files import DataFile, Files, Folder
from rivermouth.write.files.table import Alone, FilesTable, appended

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
"""The columns of ``warehouse.tables``."""
PROPERTIES = {"delta.checkpointInterval": "50"}
"""Those that a session of ours gives a table that it creates."""
_SCHEMA = schema_of(
    (field, kind) for field, _, kind in (each.partition(" ") for each in COLUMNS.split(", "))
)
_KINDS = {"string": "string", "int64": "long", "int32": "integer", "binary": "binary"}
LEAVES = tuple(Leaf((e.name,), _KINDS.get(str(e.type), "timestamp")) for e in QUARANTINE)


@dataclass(frozen=True)
class QuarantineTarget:
    """Where bad records go, and what is said of each: as of which commit, and why by its code."""

    folder: Folder
    commit: str
    pipeline: str
    sequence: int
    reasons: Mapping[str, str]


def write_quarantined(
    files: Files, rows: pa.RecordBatch, target: QuarantineTarget
) -> list[DataFile]:
    """Add decoded rows that are bad to ``files`` of ``target.folder``; return those completed."""
    if not rows.num_rows:
        return []
    _make(target.folder.store)
    kafka, codes = rows.column("_kafka"), rows.column("code")
    said = {
        "commit": target.commit,
        "pipeline": target.pipeline,
        "sequence": target.sequence,
        "quarantined_at": datetime.now(timezone.utc),
    }
    reasons = pa.array([target.reasons.get(code) for code in codes.to_pylist()], pa.string())
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
    return files.add(pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE))


def written_again(files: Sequence[DataFile], target: QuarantineTarget) -> tuple[DataFile, ...]:
    """The rows of these files of ``target.folder`` as of another commit, in files of their own.

    Not where the quarantine is partitioned.
    """
    into, done = Files(target.folder, 0), list[DataFile]()
    commit = pa.scalar(target.commit, pa.string())
    for each in files:
        with pq.ParquetFile(target.folder.store.opened(each.name)) as parquet:
            for batch in parquet.iter_batches():
                of_commit = pa.repeat(commit, batch.num_rows)
                done += into.add(batch.set_column(0, QUARANTINE.field("commit"), of_commit))
    return (*done, *into.end())


def _make(store: Store) -> None:
    """Create the quarantine if it is missing: a file in its folder would stop all who try later."""
    # Not the folder of the log alone: who made it may have been killed before its first commit.
    log = DeltaLog(store)
    if log.definition() is None:
        log.commit(creation(_SCHEMA, PROPERTIES))  # or another task was faster


def task_number() -> int:
    """The number of the task that asks."""
    from pyspark import TaskContext  # there already, where a task runs

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


class QuarantineFiles:
    """The quarantine in ``store``, which may not exist yet, for one pipeline.

    ``reasons`` say what the codes of its records mean. ``alone``: see ``FilesTable``.
    """

    def __init__(
        self,
        store: Store,
        pipeline: str,
        reasons: Mapping[str, str],
        alone: Alone = lambda act: act(),
    ) -> None:
        self._store, self._reasons = store, reasons
        self._table = FilesTable(store, pipeline, alone)

    def definition(self) -> Definition | None:
        """What the log says of the table now; None: there is none yet."""
        if not self._table.exists():
            return None
        return self._table.definition()

    def target(self, plan: CommitPlan, table: Definition | None) -> QuarantineTarget:
        """Where the tasks of the plan's batch put bad records; ``table``: see ``definition``."""
        return QuarantineTarget(
            folder=folder_of(self._store, table),
            commit=plan.commit,
            pipeline=plan.draft.pipeline,
            sequence=plan.sequence,
            reasons=dict(self._reasons),
        )

    def commit(self, files: Sequence[DataFile], plan: CommitPlan) -> None:
        """Let these files count, if there are any. Raises BatchFailed."""
        if not files:
            return
        self._table.newest()
        said = f"rivermouth quarantine of commit {plan.commit}"
        self._table.after_others(replace(appended(files), said=said))
        reach("P12")


def folder_of(store: Store, table: Definition | None) -> Folder:
    """The folder of a table; None: of a quarantine that does not exist yet."""
    if table is None:
        return Folder(store, LEAVES, tight=False)
    return Folder(
        store,
        leaves_of(table),
        tight=table.tight,
        partitions=partitions_of(table),
        file_bytes=table.file_bytes,
    )


@contextmanager
def reporting(target: QuarantineTarget, store: Store) -> Iterator[QuarantineOutput]:
    """A side output for one evaluation of a batch; its reports lie in ``store`` within the block.

    If the evaluation fails, what its tasks had written is removed.
    """
    # Tasks of an evaluation that failed may still tell: so each has a folder of its own.
    reports = store.within(f"{target.commit}-{uuid.uuid4()}")
    try:
        yield QuarantineOutput(target, reports)
    except BaseException:
        discard(reports, target.folder.store)
        raise
    finally:
        with suppress(OSError):
            reports.delete(_reported(reports))


@dataclass(frozen=True)
class QuarantineOutput:
    """Where tasks divert bad records; they report in ``reports``, which the driver sees, too."""

    target: QuarantineTarget
    reports: Store

    @contextmanager
    def opened(self) -> Iterator[TaskOutput]:
        """For one task: what it told counts once the block has ended without an error."""
        task = TaskOutput(self.target, task_number())
        try:
            yield task
            task.report(self.reports)
        except BaseException:
            task.discard()
            raise


class TaskOutput:
    """That of one task."""

    def __init__(self, target: QuarantineTarget, number: int) -> None:
        self._target, self._number = target, number
        self._files = Files(target.folder, number)
        self._done: list[DataFile] = []
        self._counted = Counted()

    def take(self, decoded: pa.RecordBatch) -> None:
        """Count decoded rows, and divert the bad ones."""
        code = decoded.column("code")
        self._counted.add(decoded.column("_kafka"), code)
        if code.null_count < len(code):
            self._done += write_quarantined(self._files, bad(decoded), self._target)

    def report(self, reports: Store) -> None:
        """Complete the files, and tell of them and of the good records."""
        self._done += self._files.end()
        report = {
            "task": self._number,
            "counted": self._counted.to_json(),
            "files": [each.to_json() for each in self._done],
        }
        reports.put(f"{uuid.uuid4()}.json", json.dumps(report).encode())

    def discard(self) -> None:
        """Remove the files: nobody will hear of them."""
        self._files.discard()


@dataclass(frozen=True)
class Diverted:
    """What ``tasks`` tasks counted, and the files of what they diverted."""

    tasks: int
    counted: Counted
    files: tuple[DataFile, ...]


def diverted(reports: Store, where: str) -> Diverted:
    """What the tasks have reported. ``where`` is the pipeline.

    Raises BatchFailed where two attempts at a task found different records: nobody can say of which
    of them Spark took the rows.
    """
    found: dict[int, Diverted] = {}
    for name in _reported(reports):
        read = json.loads(reports.read(name) or b"")
        report = _report(read)
        first = found.setdefault(read["task"], report)
        if first.counted != report.counted:
            raise other_records(where, "others in the second attempt at a task than in the first")
    counted = Counted()
    for each in found.values():
        counted.update(each.counted)
    files = tuple(file for each in found.values() for file in each.files)
    return Diverted(len(found), counted, files)


def _reported(reports: Store) -> list[str]:
    """The names of the reports, in order."""
    return [each for each in reports.names("") if each.endswith(".json")]


def discard(reports: Store, store: Store) -> None:
    """Remove the files that the tasks have reported: their evaluation has failed."""
    with suppress(OSError):  # why it has failed says more
        for name in _reported(reports):
            store.delete(e.name for e in _report(json.loads(reports.read(name) or b"")).files)


def _report(read: Mapping[str, Any]) -> Diverted:
    return Diverted(
        1, Counted.from_json(read["counted"]), tuple(map(DataFile.from_json, read["files"]))
    )
