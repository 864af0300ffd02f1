"""Scans of two tables with the same rows, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

SCAN = "SELECT count(*), sum(id), sum(amount), max(price), sum(length(note)), max(_kafka.offset)"


class Took(NamedTuple):
    """Seconds by the clock, and of CPU."""

    wall: float
    cpu: float

    def without(self, other: Took) -> Took:
        """The rest, where that was a part."""
        return Took(self.wall - other.wall, self.cpu - other.cpu)


def medians(took: Sequence[Took]) -> Took:
    """Of each."""
    return Took(*map(statistics.median, zip(*took, strict=True)))


Scan = Callable[[Path], tuple[Took, list[Mapping[str, Any]]]]
"""Scans all rows and columns of a table: what that took, and what it found."""


def by_spark(session: SparkSession) -> Scan:
    """The scan by Spark; its CPU is that of the JVM, and not measured."""

    def scanned(path: Path) -> tuple[Took, list[Mapping[str, Any]]]:
        session.read.format("delta").load(str(path)).createOrReplaceTempView("t")
        began = time.perf_counter()
        found = [each.asDict() for each in session.sql(f"{SCAN} FROM t").collect()]
        return Took(time.perf_counter() - began, 0.0), found

    return scanned


def scanned(path: Path) -> tuple[Took, list[Mapping[str, Any]]]:
    """What a scan of all rows and columns took, with CPU of all threads, and what it found."""
    engine = QueryBuilder().register("t", DeltaTable(str(path)))
    began, cpu = time.perf_counter(), time.process_time()
    found = pa.table(engine.execute(f"{SCAN} FROM t").read_all()).to_pylist()
    return Took(time.perf_counter() - began, time.process_time() - cpu), found


def in_turns(scan: Scan, one: Path, other: Path, rounds: int) -> tuple[Took, Took]:
    """Scans of two tables with the same rows in turns, the medians; the first round warms up."""
    seconds: dict[Path, list[Took]] = {one: [], other: []}
    for turn in range(rounds + 1):
        found = []
        for each in seconds if turn % 2 else reversed(seconds):
            took, rows = scan(each)
            seconds[each] += [took] if turn else []
            found.append(rows)
        if found[0] != found[1]:
            raise SystemExit(f"the two tables differ: {found}")
    ours, best = (medians(each) for each in seconds.values())
    return ours, best
