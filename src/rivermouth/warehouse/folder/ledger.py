"""The ledger of a table in a folder, for who only reads: without Spark."""

from __future__ import annotations

from pathlib import Path

from rivermouth.config import OFFSETS_TABLE, Pipeline
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.folder.offsets import FolderOffsets
from rivermouth.warehouse.ports import LedgerStore


def folder_ledger(folder: Path, pipeline: Pipeline) -> LedgerStore:
    """Where the ledger of a pipeline is read, in the local warehouse ``folder``."""
    log = FolderLog(pipeline.target.table.path(folder))
    return LedgerStore(log, FolderOffsets(OFFSETS_TABLE.path(folder)))
