"""Bad rows of a batch that others than tasks of ours have parted from the good ones: into files of
the quarantine, where Spark writes no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan
from rivermouth.warehouse.quarantine import check_written
from rivermouth.write.files.bad_records import (
    QuarantineFiles,
    QuarantineTarget,
    task_number,
    write_quarantined,
)
from rivermouth.write.files.data_files import DataFile, Files
from rivermouth.write.files.writing import RETURNED, RETURNED_DDL, collected

_ASKED = ("_kafka", "key", "value", "code", "reason")


@dataclass(frozen=True)
class Diverting:
    """What ``mapInArrow`` is to call: it writes all rows into ``target``, and tells the files."""

    target: QuarantineTarget

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows; give back ``RETURNED``."""
        files = Files(self.target.folder, task_number())
        try:
            done = [each for rows in batches for each in self._written(files, rows)]
            told = [{"file": e.to_json(), "bad": True} for e in (*done, *files.end())]
        except BaseException:
            files.discard()
            raise
        if told:
            yield pa.RecordBatch.from_pylist(told, RETURNED)

    def _written(self, files: Files, rows: pa.RecordBatch) -> list[DataFile]:
        return write_quarantined(files, rows, self.target)


def write(quarantine: QuarantineFiles, bad: DataFrame, plan: CommitPlan, seen: int) -> None:
    """Append the bad rows of a decoded batch under the plan's commit id.

    See ``warehouse.quarantine.QuarantineTable.write``.
    """
    target = quarantine.target(plan, quarantine.definition())
    rows = bad.select(*(each for each in _ASKED if each in bad.columns)).coalesce(1)
    returned = rows.mapInArrow(Diverting(target), RETURNED_DDL).collect()
    files = collected(each.asDict() for each in returned).bad
    check_written(plan, seen, sum(each.rows for each in files))
    quarantine.commit(files, plan)
