"""The sieve of the tasks that fold: bad records into files of the quarantine, and all counted.

A fold gives back one row per key, so what a task has to tell beside its rows is written into a
folder, which the driver reads. Each attempt at a task writes a report of its own, at its end. An
attempt that failed after that leaves one, too: of the attempts at a task one counts.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.decoded import PLACE
from rivermouth.write.files.apart import Apart, set_apart, task_number
from rivermouth.write.files.counts import other_records, records_of
from rivermouth.write.files.file import DataFile, Files, Places, counted


@dataclass(frozen=True)
class QuarantineSieve:
    """A ``formats.sieve.Sieve``; ``reports`` is a folder that driver and tasks see."""

    apart: Apart
    reports: Path

    @contextmanager
    def opened(self) -> Iterator[TaskSieve]:
        """See ``Sieve.opened``."""
        task = TaskSieve(self.apart, task_number())
        try:
            yield task
            task.report(self.reports)
        except BaseException:
            task.discard()
            raise


class TaskSieve:
    """A ``formats.sieve.OpenSieve``."""

    def __init__(self, apart: Apart, number: int) -> None:
        self._apart, self._number = apart, number
        self._files = Files(apart.folder, number)
        self._done: list[DataFile] = []
        self._good: Counter[tuple[str, int]] = Counter()

    def good(
        self, raw: pa.RecordBatch, code: pa.StringArray, reason: pa.StringArray
    ) -> pa.BooleanArray | None:
        """See ``OpenSieve.good``."""
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in PLACE], PLACE)
        if code.null_count == len(code):
            self._good.update(counted(kafka))
            return None
        columns = {"_kafka": kafka, "code": code, "reason": reason}
        columns |= {each: raw.column(each) for each in ("key", "value")}
        good = code.is_null()
        bad = pa.RecordBatch.from_pydict(columns).filter(pc.invert(good))
        self._good.update(counted(kafka.filter(good)))
        self._done += set_apart(self._files, bad, self._apart)
        return good

    def report(self, folder: Path) -> None:
        """Complete the files, and tell of them and of the good records."""
        self._done += self._files.end()
        told = {
            "task": self._number,
            "good": [[*place, n] for place, n in sorted(self._good.items())],
            "bad": [each.as_row() for each in self._done],
        }
        file = folder / str(uuid.uuid4())
        file.write_text(json.dumps(told), "utf-8")
        os.replace(file, file.with_suffix(".json"))

    def discard(self) -> None:
        """Remove the files: nobody will hear of them."""
        self._files.discard()


@dataclass(frozen=True)
class Sifted:
    """What ``tasks`` tasks counted and set apart."""

    tasks: int
    good: Places
    bad: tuple[DataFile, ...]


def sifted(reports: Path, where: str) -> Sifted:
    """What the tasks have told. ``where`` is the pipeline.

    Raises BatchFailed where two attempts at a task found different records: nobody can say of which
    of them Spark took the rows.
    """
    found: dict[int, Sifted] = {}
    for file in sorted(reports.glob("*.json")):
        told = json.loads(file.read_text("utf-8"))
        report = _report(told)
        first = found.setdefault(told["task"], report)
        if (first.good, records_of(first.bad)) != (report.good, records_of(report.bad)):
            raise other_records(where, "others in the second attempt at a task than in the first")
    good: Counter[tuple[str, int]] = Counter()
    for each in found.values():
        good.update(each.good)
    return Sifted(len(found), good, tuple(file for each in found.values() for file in each.bad))


def discard(reports: Path, folder: str) -> None:
    """Remove the files of which the tasks have told: their evaluation has failed."""
    for file in reports.glob("*.json"):
        with suppress(OSError):  # why it has failed says more
            for each in _report(json.loads(file.read_text("utf-8"))).bad:
                Path(folder, each.name).unlink(missing_ok=True)


def _report(told: Mapping[str, Any]) -> Sifted:
    good = {(topic, partition): n for topic, partition, n in told["good"]}
    return Sifted(1, good, tuple(DataFile.of(each) for each in told["bad"]))
