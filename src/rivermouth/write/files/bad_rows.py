"""Bad rows of a batch that others than tasks of ours have parted from the good ones: into files of
the quarantine, where Spark writes no table.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan
from rivermouth.warehouse.quarantine import check_written
from rivermouth.write.files.bad_records import QuarantineFiles, write_quarantined
from rivermouth.write.files.writing import carried_out, filled

_ASKED = ("_kafka", "key", "value", "code", "reason")


def write(quarantine: QuarantineFiles, bad: DataFrame, plan: CommitPlan, seen: int) -> None:
    """Append the bad rows of a decoded batch under the plan's commit id.

    See ``warehouse.quarantine.QuarantineTable.write``.
    """
    target = quarantine.target(plan, quarantine.definition())
    rows = bad.select(*(each for each in _ASKED if each in bad.columns)).coalesce(1)
    add = partial(write_quarantined, target=target)
    files = carried_out(rows, partial(filled, target.folder, add=add, bad=True)).bad
    check_written(plan, seen, sum(each.rows for each in files))
    quarantine.commit(files, plan)
