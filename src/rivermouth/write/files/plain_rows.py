"""Rows that Spark has made already, as files of a table and one commit, where Spark writes none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from rivermouth.storage.store import Store
from rivermouth.warehouse.ports import ATTEMPTS
from rivermouth.write.files.bad_records import folder_of
from rivermouth.write.files.data_files import Files, Folder
from rivermouth.write.files.table import FilesTable, appended
from rivermouth.write.files.writing import carried_out, filled


@dataclass(frozen=True)
class Rows:
    """What ``mapInArrow`` is to call: it writes all rows into ``folder``, and tells the files."""

    folder: Folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows; give back ``RETURNED``."""
        return filled(self.folder, batches, Files.add, bad=False)


def append(rows: DataFrame, store: Store, app: str, said: str) -> bool:
    """Append rows to a table that is there, in one commit with the ``txn`` 1 of ``app``.

    False, and nothing is written, where it has that ``txn``. Raises CommitConflict where others
    commit for as long as it is tried, and BatchFailed.
    """
    table = FilesTable(store, store.where)
    table.newest()
    if table.txn(app):
        return False
    into = folder_of(store, table.definition())
    files = carried_out(rows, Rows(into)).good
    commit = replace(appended(files), said=said, txns={app: 1})
    for _ in ATTEMPTS.each():
        table.newest()
        if table.txn(app):
            break
        if table.log.commit(commit):
            return True
    store.delete(each.name for each in files)
    return False
