"""Spark that refuses what Databricks' serverless compute refuses.

Serverless is Spark Connect, so a session has neither a JVM nor a ``sparkContext`` to begin
with. On top of that it allows six session confs, no caching, streams only with the trigger
``availableNow``, and tables of a catalog by their names alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.connect.catalog import Catalog
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

CONFS = {
    "spark.sql.shuffle.partitions",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.legacy.timeParserPolicy",
    "spark.databricks.execution.timeout",
}
NOT_THERE = [
    *((DataFrame, name) for name in ("cache", "persist", "unpersist")),
    *((DataFrame, name) for name in ("checkpoint", "localCheckpoint")),
    *((Catalog, name) for name in ("cacheTable", "uncacheTable", "clearCache")),
    *((SparkSession, name) for name in ("copyFromLocalToFs", "addArtifacts", "addArtifact")),
]


class Refused(PySparkNotImplementedError):
    """Serverless does not have it."""

    def __init__(self, what: str) -> None:
        super().__init__(errorClass="NOT_IMPLEMENTED", messageParameters={"feature": what})


def refuse() -> None:
    """Let this process's sessions refuse, until it ends."""
    for owner, name in NOT_THERE:
        setattr(owner, name, _refusing(f"{owner.__name__}.{name}"))
    for owner, name, allowed, what in RESTRICTED:
        _only(owner, name, allowed, what)


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise Refused(what)

    return refused


def _only(owner: type, name: str, allowed: Callable[..., bool], what: str) -> None:
    """Let the method do its work where ``allowed``, given the same arguments, says so."""
    original = getattr(owner, name)

    def checked(*arguments: Any, **named: Any) -> Any:
        if not allowed(*arguments, **named):
            raise Refused(f"{owner.__name__}.{name}: {what}")
        return original(*arguments, **named)

    setattr(owner, name, checked)


def _by_name(_: SparkSession, statement: str, *__: Any, **___: Any) -> bool:
    said = statement.upper()
    by_path = "DELTA.`" in said or re.search(r"\bLOCATION\s+'", said)
    return not by_path and said.split()[0] not in ("SET", "RESET", "CACHE", "UNCACHE", "CLEAR")


def _files(
    access: DataFrameReader | DataFrameWriter,
    path: object = None,
    format: str | None = None,
    **_: Any,
) -> bool:
    """Plain files in a volume may be read and written; what is no path is a table's own matter."""
    own = access._write.source if isinstance(access, DataFrameWriter) else access._format
    return path is None or (format or own) == "parquet"


def _ends(stream: DataStreamWriter, *_: Any, **__: Any) -> bool:
    return bool(stream._write_proto.HasField("available_now"))


RESTRICTED: list[tuple[type, str, Callable[..., bool], str]] = [
    (RuntimeConf, "set", lambda _, key, *__: key in CONFS, "CONFIG_NOT_AVAILABLE"),
    (RuntimeConf, "unset", lambda _, key: key in CONFS, "CONFIG_NOT_AVAILABLE"),
    (RuntimeConf, "_set_all", lambda _, configs, **__: {*configs} <= CONFS, "CONFIG_NOT_AVAILABLE"),
    (SparkSession, "sql", _by_name, "a path, a conf or a cache"),
    (DataFrameWriter, "save", _files, "a table by its path"),
    (DataFrameReader, "load", _files, "a table by its path"),
    (DataStreamWriter, "_start_internal", _ends, "INFINITE_STREAMING_TRIGGER_NOT_SUPPORTED"),
]
"""Class, method, when it may be called, and what is said where it may not."""
