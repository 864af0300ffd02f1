"""A long run of upserts of random keys with compaction beside it: what must not grow.

    python bench/longrun.py [--batches 10000] [--keys 10000] [--rows 4000000] [--every 0]

There is no Kafka and no Spark: a batch is a task's work (decode, reduce, write files) and the
driver's (index, deletion vectors, commit, checkpoint, compaction), in this process. Its clock is a
made one: a batch takes ``--every`` seconds, as with Spark, and a job of compaction its CPU-seconds,
so many batches long. So the figures are the same on a busy machine, and batches can be timed apart
from jobs; with ``--beside`` jobs go on in a thread and by the clock of the machine.

At the end the table is compared with the same rows in files without deletions, scanned in turns by
delta-rs, and by Spark in a session that starts then. Progress is told on standard error. The last
line is JSON:

- ``median_ms``, ``slowest_ratio``: a batch, and the slowest one divided by the median; with
  ``cpu_`` the same of the thread's CPU time alone, which other processes do not lengthen;
- ``late_ratio``: the median of the last tenth divided by that of the second one;
- ``scan_ratio``, ``scan_cpu_ratio``: a scan of all rows and columns, divided by that of the
  compacted rows;
- ``spark_scan_ratio``: the same by Spark;
- ``folder_ratio``: the bytes that a vacuum leaves, divided by those of the compacted rows;
- ``folder_before_mb``, ``folder_mb``: the folder before and after it;
- ``files``, ``vectors``, ``dead``: of the newest version; ``dead`` is the part of rows deleted;
- ``jobs``, ``job_s``, ``job_mb``, ``share``: commits of compaction, how long its jobs took, what
  they wrote, and the part of the time that they took;
- ``curve``: these over the run, at some batches.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema
from measured import say
from scans import Took, by_spark, in_turns, medians, scanned

from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.formats.tasks import decoder_of
from rivermouth.local.session import start_session
from rivermouth.operate.by_files import unnamed
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Action, AddFile, Commit
from rivermouth.warehouse.delta.vectors import deleted_rows
from rivermouth.write.files.bad_records import LEAVES, QuarantineTarget, folder_of
from rivermouth.write.files.compaction import Compaction, Nobody, Work, rewritten
from rivermouth.write.files.data_files import Files, Folder
from rivermouth.write.files.table import FilesTable, appended
from rivermouth.write.files.writing import Writing, collected
from rivermouth.write.keys.effect import MovedKeys, change_of
from rivermouth.write.keys.index import KeyIndex
from rivermouth.write.keys.runs import Shelf
from rivermouth.write.rows import Keyed

COLUMNS = "id BIGINT, amount BIGINT, price DOUBLE, note STRING"
PLACE = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
POINTS = 40
Keys = npt.NDArray[np.int64]


def a_pipeline() -> Pipeline:
    """Upserts by ``id``."""
    source = {"topics": ("t",), "format": "json"}
    target = {"table": "silver.t", "mode": "upsert", "keys": ("id",)}
    given = {"name": "p", "source": source, "ddl": COLUMNS, "target": target}
    return Pipeline.model_validate(given)


def definition(pipeline: Pipeline) -> list[Action]:
    """The table as a run makes it."""
    schema = schema_of(pipeline.table_columns).append(pa.field("_kafka", PLACE))
    features = {f"{who}Features": ["deletionVectors"] for who in ("reader", "writer")}
    on = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "50"}
    metadata = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(schema).to_json(),
        "partitionColumns": [],
        "configuration": on,
        "createdTime": 0,
    }
    return [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": metadata},
    ]


def records(keys: Keys, offset: int, at_once: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Records of these keys as Spark hands them to a task."""
    for begin in range(0, len(keys), at_once):
        ids = keys[begin : begin + at_once]
        offsets = pa.array(np.arange(len(ids)) + offset + begin)
        text = pa.array(ids).cast(pa.string())
        value = pc.binary_join_element_wise(
            '{"id":',
            text,
            ',"amount":',
            offsets.cast(pa.string()),
            ',"price":',
            text,
            '.25,"note":"note of ',
            text,
            " and ",
            offsets.cast(pa.string()),
            '"}',
            "",
        )
        same = {"topic": pa.scalar("t"), "partition": pa.scalar(0, pa.int32())}
        columns = {
            "key": pa.nulls(len(ids), pa.binary()),
            "value": value.cast(pa.binary()),
            **{name: pa.repeat(each, len(ids)) for name, each in same.items()},
            "offset": offsets,
            "timestamp": pa.nulls(len(ids), pa.timestamp("us", "UTC")),
        }
        yield pa.RecordBatch.from_pydict(columns)


def filled(keys: Keys, at_once: int = 50_000) -> Iterator[pa.RecordBatch]:
    """Rows of the table."""
    for begin in range(0, len(keys), at_once):
        ids = pa.array(keys[begin : begin + at_once])
        text = ids.cast(pa.string())
        place = [
            pa.repeat(pa.scalar("t"), len(ids)),
            pa.repeat(pa.scalar(0, pa.int32()), len(ids)),
            ids,
            pa.nulls(len(ids), pa.timestamp("us", "UTC")),
        ]
        columns = {
            "id": ids,
            "amount": ids,
            "price": ids.cast(pa.float64()),
            "note": pc.binary_join_element_wise("note of ", text, " and ", text, ""),
            "_kafka": pa.StructArray.from_arrays(place, fields=[*PLACE]),
        }
        yield pa.RecordBatch.from_pydict(columns)


@dataclass
class MadeClock:
    """A clock that is set, and jobs that are carried out at once but last as long as by it."""

    now: float = 0.0
    ends: float = 0.0
    spent: float = 0.0
    apart: Took = field(default_factory=lambda: Took(0, 0))

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now

    def begin(self, act: Callable[[], None]) -> Work:
        """See ``Compaction``."""
        wall, cpu, every = time.perf_counter(), time.thread_time(), time.process_time()
        act()
        self.apart = Took(time.perf_counter() - wall, time.thread_time() - cpu)
        took = time.process_time() - every
        self.ends, self.spent = self.now + took, self.spent + took
        return self

    def is_alive(self) -> bool:
        """See ``Work``."""
        return self.now < self.ends

    def join(self, timeout: float | None = None) -> None:
        """See ``Work``."""


@dataclass
class Upserts:
    """The table, its index and its compaction, as a run has them."""

    path: Path
    clock: MadeClock | None
    offset: int = 0
    jobs: list[float] = field(default_factory=list)
    rewritten: int = 0

    def __post_init__(self) -> None:
        pipeline = a_pipeline()
        self.table = FilesTable(Store.of_folder(self.path), "p", files=True, beside=True)
        self.table.log.commit(Commit("CREATE TABLE", definition=definition(pipeline)))
        changes: Keyed = resolve(pipeline.shape.changes)(pipeline)
        if changes.by_files is None:
            raise SystemExit("these rows do not land as files")
        self.by_files = changes.by_files
        columns = self.by_files.columns(schema_of(pipeline.table_columns))
        shelf = Shelf(self.path.parent / "index", columns.width, columns.values.width)
        self.index = index = KeyIndex(self.table.log, columns, shelf)
        into = folder_of(self.table.store, self.table.definition())
        self.files = partial(Files, into, 0)
        witness = partial(MovedKeys, index)
        made = () if self.clock is None else (self.clock.begin, self.clock)
        log = self.table.log
        self.compaction = Compaction(log, self.files, witness, index.deleted_of, *made)
        bad_records = Store.of_folder(Path(f"{self.path}_bad"))
        bad = QuarantineTarget(Folder(bad_records, LEAVES, tight=False), "c", "p", 1, {})
        decode = decoder_of(pipeline)
        self.writing = Writing(into, bad, decode, self.by_files.reduction)

    def land(self, keys: Keys) -> Took:
        """Land a batch; what it took, with the CPU of this thread."""
        given = [*records(keys, self.offset)]
        self.offset += len(keys)
        began, cpu = time.perf_counter(), time.thread_time()
        written = collected(row for part in self.writing(given) for row in part.to_pylist())
        self.table.newest()
        self.index.follow()
        change = change_of(self.by_files.effect(written, self.index, self.files), self.index)
        self.table.also(change.commit)
        change.stands(self.index)
        if self.clock is not None:
            self.clock.apart = Took(0, 0)
        self.compaction.after_a_commit(self.compacted)
        took = Took(time.perf_counter() - began, time.thread_time() - cpu)
        return took if self.clock is None else took.without(self.clock.apart)

    def seed(self, rows: int, at_once: int = 500_000) -> None:
        """Fill the table, in files of so many rows."""
        for begin in range(0, rows, at_once):
            ids = np.arange(begin, min(begin + at_once, rows))
            writer = self.files()
            done = [file for part in filled(ids) for file in writer.add(part)]
            self.table.newest()
            self.table.also(appended([*done, *writer.end()]))
        self.table.newest()
        self.index.follow()

    def compacted(self, commit: Commit) -> None:
        """Commit a job."""
        self.table.also(commit)
        self.rewritten += commit.metrics["numAddedBytes"]
        self.jobs.append(float(commit.metrics.get("executionTimeMs", 0)) / 1000)

    @property
    def added(self) -> list[AddFile]:
        """The files of the newest version."""
        return [*self.table.log.state.current.values()]

    def facts(self) -> dict[str, float]:
        """Files, vectors, and which part of the rows is deleted."""
        vectors = [each.vector.rows for each in self.added if each.vector is not None]
        rows = sum(each.rows or 0 for each in self.added)
        dead = round(sum(vectors) / max(rows, 1), 3)
        return {"files": len(self.added), "vectors": len(vectors), "dead": dead}

    def optimised(self, path: Path) -> None:
        """The same rows in large files without deletions, as a table of its own."""
        other = FilesTable(Store.of_folder(path), "o", files=True)
        other.log.commit(Commit("CREATE TABLE", definition=definition(a_pipeline())))
        log = self.table.log
        sources = {each: deleted_rows(log.store, each.vector) for each in self.added}
        into = Files(folder_of(other.store, other.definition()), 0)
        job = rewritten(sources, log, into, Nobody(), lambda: False)
        if job is not None:
            other.also(Commit("WRITE", added=job.added))


def compared(upserts: Upserts, rounds: int) -> dict[str, float]:
    """Scans of both tables, and their bytes."""
    path = upserts.path.parent / "optimised"
    upserts.optimised(path)
    ours, best = in_turns(scanned, upserts.path, path, rounds)
    session = start_session(upserts.path.parent / "scratch")
    of_spark = in_turns(by_spark(session), upserts.path, path, rounds)
    session.stop()
    store = upserts.table.log.store
    every = sum(each.size for each in store.below(_data))
    going = sum(each.size for each in unnamed(store, int(time.time() * 1000) + 60_000))
    bytes_of_best = sum(each.stat().st_size for each in path.glob("*.parquet"))
    return {
        "scan_s": round(ours.wall, 3),
        "scan_ratio": round(ours.wall / best.wall, 3),
        "scan_cpu_ratio": round(ours.cpu / best.cpu, 3),
        "spark_scan_s": round(of_spark[0].wall, 3),
        "spark_scan_ratio": round(of_spark[0].wall / of_spark[1].wall, 3),
        "folder_ratio": round((every - going) / bytes_of_best, 3),
        "folder_before_mb": round(every / 1e6, 1),
        "folder_mb": round((every - going) / 1e6, 1),
    }


def _data(name: str) -> bool:
    return not name.startswith("_")


def measured(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Make the table, land all batches, compare."""
    dice, clock = np.random.default_rng(asked.seed), None if asked.beside else MadeClock()
    upserts = Upserts(folder / "t", clock)
    upserts.seed(asked.rows)
    say(f"{asked.rows:,} rows in {len(upserts.added)} files")
    seconds, curve = list[Took](), list[dict[str, float]]()
    began, part = time.perf_counter(), max(1, asked.batches // POINTS)
    for batch in range(asked.batches):
        seconds.append(upserts.land(dice.integers(0, asked.rows, asked.keys)))
        if clock is not None:
            clock.now += asked.every
        if (batch + 1) % part == 0:
            curve.append(_point(batch + 1, seconds[-part:], upserts))
    whole = time.perf_counter() - began if clock is None else clock.now
    spent = sum(upserts.jobs) if clock is None else clock.spent
    upserts.compaction.close()
    upserts.table.settle()
    tenth, median = max(1, len(seconds) // 10), medians(seconds)
    late, early = medians(seconds[-tenth:]), medians(seconds[tenth : 2 * tenth])
    return {
        "batches": asked.batches,
        "keys": asked.keys,
        "rows": asked.rows,
        "median_ms": round(median.wall * 1000, 1),
        "cpu_median_ms": round(median.cpu * 1000, 1),
        "slowest_ratio": round(max(each.wall for each in seconds) / median.wall, 2),
        "cpu_slowest_ratio": round(max(each.cpu for each in seconds) / median.cpu, 2),
        "late_ratio": round(late.cpu / early.cpu, 2),
        **upserts.facts(),
        "jobs": len(upserts.jobs),
        "job_mb": round(upserts.rewritten / 1e6, 1),
        "job_s": round(spent, 1),
        "share": round(spent / whole, 3),
        **compared(upserts, asked.rounds),
        "curve": curve,
    }


def _point(batch: int, last: Sequence[Took], upserts: Upserts) -> dict[str, float]:
    median = medians(last)
    took = {"ms": round(median.wall * 1000, 1), "cpu_ms": round(median.cpu * 1000, 1)}
    took["cpu_max"] = round(max(each.cpu for each in last) * 1000, 1)
    scan = {"scan_cpu_s": round(scanned(upserts.path)[0].cpu, 3)}
    found = {"batch": batch, **took, **upserts.facts(), "jobs": len(upserts.jobs), **scan}
    say(json.dumps(found))
    return found


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--every", type=float, default=0.3)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=7)
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as folder:
        print(json.dumps(measured(parser.parse_args(), Path(folder))))


if __name__ == "__main__":
    main()
