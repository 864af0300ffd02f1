"""Which way the commits of a pipeline are made: by the driver, or through Spark; and why. Pure.

Whatever a table's protocol, properties and columns say that is not on the list, is a reason to let
Spark write it: Delta's own writer knows what it means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rivermouth.config import Commit, Pipeline
from rivermouth.config.properties import understood
from rivermouth.config.totals import why_spark

FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",  # rows that are added are read from the data files
        "checkConstraints",  # each constraint is a property, which is not on the list
        "clustering",  # OPTIMIZE puts rows together; of the columns there are statistics
        "deletionVectors",  # of rows that are added nothing is deleted
        "domainMetadata",  # it stays as it is
        "generatedColumns",  # each of them is marked in the schema
        "invariants",  # so are they
        "timestampNtz",
        "variantType",  # each column has its type; delta-rs names it with any other change
    }
)
"""The features of a table's protocol that ask nothing of who adds rows, or what is looked for."""

READER, WRITER, WRITER_FEATURES = (1, 2, 3), (1, 2, 3, 4), 7
"""The versions of a protocol that are understood, and the one that lists its features."""

_SECONDS = {"second": 1.0, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SECONDS |= {"microsecond": 1e-6, "millisecond": 1e-3}
_PART = rf"(\d+)\s*({'|'.join(_SECONDS)})s?\b"
_DURATION = re.compile(rf"\s*(?:interval\b)?\s*(?:{_PART}\s*)+")
_DAY_S = 86400.0


def interval_s(text: str) -> float | None:
    """A duration of Delta's, like ``interval 30 days``, in seconds; None: not understood."""
    if not _DURATION.fullmatch(text.lower()):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text.lower()))


def duration_s(text: str | None) -> float:
    """How long log clean-up leaves commits, by that setting of a table, in seconds.

    Delta's 30 days where there is none; one day where it is not understood: better an entry is
    written again too soon.
    """
    if text is None:
        return 30 * _DAY_S
    understood = interval_s(text)
    return _DAY_S if understood is None else understood


_SIZE = re.compile(r"([0-9]{1,18})\s*([bkmgt]?)(?:(?<=[kmgt])b)?")

INTERVAL = 10
"""Delta's own: after so many commits comes a checkpoint."""
INDEXED = 32
"""Delta's own: of so many leaf columns statistics are kept."""


@dataclass(frozen=True)
class Definition:
    """What a table's log says of it: protocol, and metadata. ``schema`` is Delta's JSON.

    ``clusters`` are the columns that it is clustered by, each as the names that lead to it.
    """

    reader: int
    writer: int
    features: frozenset[str]
    properties: Mapping[str, str]
    schema: Mapping[str, Any]
    partitions: Sequence[str] = field(default=())
    clusters: Sequence[Sequence[str]] = field(default=())

    @property
    def checkpoint_interval(self) -> int:
        """After how many commits a checkpoint is due."""
        return int(self.setting("delta.checkpointInterval") or INTERVAL)

    @property
    def indexed(self) -> int:
        """Of how many leaf columns statistics are kept; -1: of all."""
        return int(self.setting("delta.dataSkippingNumIndexedCols") or INDEXED)

    @property
    def file_bytes(self) -> int | None:
        """How large its files are to be; None: the table does not say."""
        found = _SIZE.fullmatch((self.setting("delta.targetFileSize") or "").strip().lower())
        return None if found is None else int(found[1]) << 10 * "bkmgt".index(found[2] or "b")

    @property
    def cleans_up(self) -> bool:
        """Whether commits that are older than the table keeps are removed from its log."""
        return (self.setting("delta.enableExpiredLogCleanup") or "true").lower() == "true"

    @property
    def tight(self) -> bool:
        """Whether statistics say that they are exact: where deletion vectors may come."""
        return "deletionVectors" in self.features

    @property
    def marks_deletes(self) -> bool:
        """Whether deleted rows are marked by deletion vectors."""
        on = (self.setting("delta.enableDeletionVectors") or "").lower() == "true"
        return on and self.tight

    @property
    def log_retention_s(self) -> float:
        """How long log clean-up leaves commits, in seconds."""
        return duration_s(self.setting("delta.logRetentionDuration"))

    def setting(self, name: str) -> str | None:
        """The value of a property, however its name is spelt; None: it is not set."""
        given = {key.lower(): value for key, value in self.properties.items()}
        return given.get(name.lower())


def why_not(table: Definition, keyed: Collection[str] = ()) -> str:
    """Why Spark has to write a table, in a clause; empty: it is understood.

    ``keyed``: its columns, where rows are replaced by others.
    """
    return next(_reasons(table), "") or next(_of_replacing(table, keyed), "")


def _of_replacing(table: Definition, columns: Collection[str]) -> Iterator[str]:
    """What stands against rows that replace others, of these columns; none: nothing is replaced."""
    if not columns:
        return
    kinds = {each["name"]: each["type"] for each in table.schema["fields"]}
    for name in table.partitions:
        if kinds[name] == "timestamp":  # of a text without a zone nobody knows when it is
            yield f"rows are replaced, and the table is partitioned by the time {name}"
    if not table.marks_deletes:
        yield "the table has no deletion vectors"
    for name in ("delta.enableChangeDataFeed", "delta.appendOnly"):
        if (table.setting(name) or "").lower() == "true":
            yield f"the table has the property {name} = true"
    # What others keep there outlives a replacement.
    for each in table.schema["fields"]:
        if each["name"] not in columns:
            yield f"the table has a column {each['name']} of its own"


def _reasons(table: Definition) -> Iterator[str]:
    if table.reader not in READER or table.writer not in (*WRITER, WRITER_FEATURES):
        yield f"the table has the protocol {table.reader}, {table.writer}"
    for each in sorted(table.features - FEATURES):
        yield f"the table has the feature {each}"
    for name, value in sorted(table.properties.items()):
        if name.lower().startswith("delta.") and not understood(name, value):
            yield f"the table has the property {name} = {value}"
    kinds = {each["name"]: each["type"] for each in table.schema["fields"]}
    for name in table.partitions:
        kind = kinds[name]
        if not (kind in PARTITIONS or (isinstance(kind, str) and kind.startswith(_DECIMAL))):
            yield f"the table is partitioned by {name}, which is of the type {kind}"
    yield from _of_columns(table.schema, ())


def _of_columns(struct: Mapping[str, Any], above: Sequence[str]) -> Iterator[str]:
    for each in struct["fields"]:
        path = (*above, str(each["name"]))
        name, metadata = ".".join(path), sorted(set(each.get("metadata") or {}) - {"comment"})
        if not each.get("nullable", True):
            yield f"the column {name} is NOT NULL"
        if metadata:
            yield f"the column {name} has {metadata[0]}"
        yield from _of_type(each["type"], path)


def _of_type(kind: Any, path: Sequence[str]) -> Iterator[str]:
    if isinstance(kind, str):
        if kind not in _PRIMITIVE and not kind.startswith(_DECIMAL):
            yield f"the column {'.'.join(path)} is of the type {kind}"
    elif kind["type"] == "struct":
        yield from _of_columns(kind, path)
    elif kind["type"] == "array":
        yield from _of_part(kind, "containsNull", "elementType", (*path, "element"))
    elif kind["type"] == "map":
        yield from _of_type(kind["keyType"], (*path, "key"))
        yield from _of_part(kind, "valueContainsNull", "valueType", (*path, "value"))
    else:
        yield f"the column {'.'.join(path)} is of the type {kind['type']}"


def _of_part(kind: Mapping[str, Any], null: str, part: str, path: Sequence[str]) -> Iterator[str]:
    if not kind.get(null, True):
        yield f"{'.'.join(path)} may not be null"
    yield from _of_type(kind[part], path)


_DECIMAL = "decimal("
PARTITIONS = frozenset(
    {
        *("string", "boolean", "date", "timestamp", "timestamp_ntz"),
        *("byte", "short", "integer", "long"),
    }
)
"""The types of columns, beside decimals, whose values can be written as those of partitions."""
_PRIMITIVE = frozenset(
    {
        *("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"),
        *("byte", "short", "integer", "long", "float", "double"),
    }
)


@dataclass(frozen=True)
class Way:
    """How commits are made. ``reason``: why by Spark, in a clause; empty: by the driver.

    ``alone``: they carry entries alone; else rows, as files.
    """

    reason: str = ""
    alone: bool = False

    @property
    def by(self) -> str:
        """``files`` or ``spark``; of entries alone ``driver`` or ``spark``."""
        return "spark" if self.reason else "driver" if self.alone else "files"

    def as_dict(self) -> dict[str, str | None]:
        """The same for machines."""
        return {"by": self.by, "reason": self.reason or None}

    def __str__(self) -> str:
        what = "entries are committed" if self.alone else "rows land"
        if self.reason:
            return f"{what} through Spark: {self.reason}"
        return f"{what} by the driver" if self.alone else f"{what} as files"


AS_FILES = Way()
ELSEWHERE = "the table is not in a folder of this machine"
UNPINNED = "PYSPARK_PIN_THREAD is false"
"""Why the driver does not commit to a table by itself."""


def way_of(pipeline: Pipeline, elsewhere: str = "") -> Way:
    """How the commits of batches are made, as far as the configuration tells.

    ``elsewhere``: why the driver cannot commit by itself where the table is, in a clause; empty: it
    can.
    """
    if pipeline.shape.sends:
        return way_of_entries(pipeline, elsewhere)
    in_spark = pipeline.shape.keyed and not pipeline.shape.as_files
    folded = "the mode folds records in Spark" if in_spark else ""
    of_rows = why_spark(pipeline.target.metrics, pipeline.columns)
    return Way(_first(_asked(pipeline), folded, of_rows, elsewhere))


def way_of_entries(pipeline: Pipeline, elsewhere: str = "") -> Way:
    """The same of commits that bring no rows, whatever lands the rows."""
    return Way(_first(_asked(pipeline), elsewhere), alone=True)


def _asked(pipeline: Pipeline) -> str:
    return "target.commit says so" if pipeline.target.commit is Commit.SPARK else ""


def _first(*reasons: str) -> str:
    return next(filter(None, reasons), "")


def replaced(pipeline: Pipeline) -> frozenset[str]:
    """The columns of rows that a pipeline replaces; none where it replaces nothing."""
    if not pipeline.shape.keyed:
        return frozenset()
    own = frozenset(each.name for each in pipeline.table_columns)
    return own if pipeline.shape.totals else own | {"_kafka"}


def way_into(
    known: Way,
    table: Definition | None,
    quarantine: Definition | None = None,
    keyed: Collection[str] = (),
) -> Way:
    """The same, as far as the tables tell, which may not exist yet. ``keyed``: see ``why_not``."""
    if known.reason:
        return known
    reason = "" if table is None else why_not(table, keyed)
    if not reason and quarantine is not None and (of_bad := why_not(quarantine)):
        reason = f"of the quarantine, {of_bad}"
    return replace(known, reason=reason)
