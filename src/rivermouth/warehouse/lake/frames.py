"""A table of a lake as rows of Spark, which does not reach the store: its tasks read as we do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import AddFile
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.rows import live_rows

_FILES_OF_A_TASK = 8


def frame(store: Store, session: SparkSession, version: int | None = None) -> DataFrame:
    """The rows of the table at a version; None: the newest.

    Raises LedgerBroken, and LogUnreadable; a file that is gone ends the query.
    """
    if version is None:
        log = DeltaLog(store, files=True)
        log.follow()
    else:
        log = DeltaLog.as_of(store, version)
    schema = StructType.fromJson(dict(log.state.definition.schema))
    files = [(json.dumps(each.added(changes=False)["add"]),) for each in log.state.current.values()]
    tasks = max(1, min(len(files) // _FILES_OF_A_TASK, session.sparkContext.defaultParallelism))
    named = session.createDataFrame(files, "file STRING").repartition(tasks)
    return named.mapInArrow(Reading(store, to_arrow_schema(schema, timezone="UTC")), schema)


@dataclass(frozen=True)
class Reading:
    """What ``mapInArrow`` is to call: it gives the rows of the files that are named."""

    store: Store
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("file").to_pylist():
                yield from live_rows(self.store, AddFile.of(json.loads(text)), self.schema)
