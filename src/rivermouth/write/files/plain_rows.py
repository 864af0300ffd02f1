"""Rows that Spark has made already, as files of a table and one commit, where Spark writes none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from rivermouth.errors import CommitConflict
from rivermouth.storage.store import Store
from rivermouth.warehouse.ports import ATTEMPTS
from rivermouth.write.files.bad_records import folder_of
from rivermouth.write.files.data_files import Files
from rivermouth.write.files.table import FilesTable, appended
from rivermouth.write.files.writing import carried_out, filled


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
    files = carried_out(rows, partial(filled, into, add=Files.add, bad=False)).good
    commit = replace(appended(files), said=said, txns={app: 1})
    for _ in ATTEMPTS.each():
        table.newest()
        if table.txn(app):
            store.delete(each.name for each in files)
            return False
        if table.log.commit(commit):
            return True
    store.delete(each.name for each in files)
    raise CommitConflict("commits of others were in the way", where=store.where)
