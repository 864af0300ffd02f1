"""The staging folder: rows that are read more than once lie there in files, for one commit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame


@contextmanager
def staged(rows: DataFrame, folder: Path) -> Iterator[DataFrame]:
    """The rows, evaluated once and read from files in ``folder``, which is removed at the end.

    ``folder`` does not exist yet; driver and executors see it by the same path.
    """
    files = f"file:{folder}" if not folder.is_relative_to("/Volumes") else str(folder)
    try:
        rows.write.parquet(files)
        # A file that is gone is an error, whatever the session says: it holds changes.
        strict = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        yield rows.sparkSession.read.schema(rows.schema).options(**strict).parquet(files)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
