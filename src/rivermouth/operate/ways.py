"""Which way the commits of a pipeline would be made now, for who only looks."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rivermouth.config import Config, Pipeline, TableName
from rivermouth.registry.landings import FILES, LANDINGS, SEND
from rivermouth.registry.platforms import LOCAL
from rivermouth.write.files.known import Definition
from rivermouth.write.files.table import definition_of
from rivermouth.write.files.way import ELSEWHERE, UNPINNED, Way, way_into, way_of

_PINS = "PYSPARK_PIN_THREAD"


def way_now(config: Config, pipeline: Pipeline) -> Way | None:
    """That, on one machine; None where the mode leaves no choice.

    A table that does not exist or cannot be read says nothing.
    """
    shape = pipeline.shape
    if LANDINGS.first(LOCAL, keyed=shape.keyed, sends=shape.sends).name not in (FILES, SEND):
        return None
    table = pipeline.target.table
    others = [each.name for each in config.writers(table) if each.name != pipeline.name]
    if not isinstance(config.warehouse, Path):
        return way_of(pipeline, others, ELSEWHERE)
    unpinned = os.environ.get(_PINS, "true").lower() != "true"  # as PySpark reads it
    known, folder = way_of(pipeline, others, UNPINNED if unpinned else ""), config.warehouse
    if known.reason:
        return known
    bad = None if shape.sends else _definition(folder, table.quarantine)
    return way_into(known, _definition(folder, table), bad)


def _definition(folder: Path, table: TableName) -> Definition | None:
    with suppress(DeltaError, OSError):
        return definition_of(DeltaTable(str(table.path(folder))))
    return None
