"""How a table is laid out that a pipeline creates: partitions, clusters, and the size of files.

Only their form is here. What a table has is in its log, and counts for one that exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rivermouth.config.columns import Column
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked, closest, listed
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import Written, or_reference
from rivermouth.config.totals import Measure, key_parts, table_columns
from rivermouth.config.value_types import ColumnNames

Names = tuple[str, ...]
Columns = tuple[Column, ...]

TARGET_FILE_SIZE = "delta.targetFileSize"
"""The property of a table that says how large its files are to be."""
_UNITS = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_LEAST, _MOST = 1 << 20, 1 << 40
_SIZE = r"[0-9]{1,9}(kb|mb|gb)"
_CLUSTERS = 4
"""Delta's own: a table is clustered by so many columns at most."""
_PARTITION_KINDS = frozenset(
    {
        *("STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL"),
        *("TINYINT", "SMALLINT", "INT", "BIGINT"),
    }
)
_CLUSTER_KINDS = (_PARTITION_KINDS - {"BOOLEAN"}) | {"FLOAT", "DOUBLE"}
"""Those of which Delta notes the least and the greatest value."""


def read_size(value: object) -> int:
    """Bytes from ``64mb`` or ``1gb``; a number without a unit is refused. Raises ``Refused``."""
    form = "write a number and kb, mb or gb, for example 128mb"
    match = re.fullmatch(_SIZE, value.lower()) if isinstance(value, str) else None
    if match is None:
        kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
        raise Refused(Fault(kind, "{path} must be a size, not {value}", fix=form))
    size = int(match[0][:-2]) * _UNITS[match[1]]
    if not _LEAST <= size <= _MOST:
        message = "{path} must be from 1mb to 1024gb, not {value}"
        raise Refused(Fault(Kind.BAD_VALUE, message))
    return size


def _few(names: Names) -> Names:
    if len(names) <= _CLUSTERS:
        return names
    message = f"{{path}} has {len(names)} columns, and Delta takes {_CLUSTERS} at most"
    return checked(names, [Fault(Kind.BAD_VALUE, message, fix="leave out the last ones")])


PartitionBy = Annotated[
    ColumnNames,
    Field(
        description="The columns that a new table is partitioned by: each file has one value of"
        " each. Choose columns of few values. An empty text becomes null there. See"
        " [tables](tables.md#partitions-and-clusters).",
        examples=[["day"]],
    ),
]
ClusterBy = Annotated[
    ColumnNames,
    AfterValidator(_few),
    Field(
        description="The columns that a new table is clustered by, at most four: OPTIMIZE puts rows"
        " with near values together. Not with `partition_by`.",
        examples=[["customer_id", "at"]],
    ),
]
FileSize = Annotated[
    Annotated[
        int,
        BeforeValidator(read_size),
        Written(
            lambda: or_reference({"type": "string", "pattern": "^[0-9]{1,9}[kKmMgG][bB]$"}),
            "size",
        ),
    ]
    | None,
    Field(
        description="The size of the files of a new table, as its property `delta.targetFileSize`:"
        " a task ends a file there, and OPTIMIZE makes files of it.",
        examples=["128mb", "1gb"],
    ),
]


def fits_together(
    mode: str, partition_by: Names, cluster_by: Names, size: int | None, given: Mapping[str, str]
) -> Iterator[Fault]:
    """A table of rows, laid out in one way, with one size."""
    settings = {"partition_by": partition_by, "cluster_by": cluster_by, "file_size": size}
    for name, value in settings.items() if SHAPES.by_name[mode].sends else ():
        if value:
            message = f"{{path}} has no meaning in mode {mode}"
            fix = "it is said of a table of rows: remove it"
            yield Fault(Kind.KEYS_AND_MODE, message, path=("target", name), fix=fix, at_key=True)
    if partition_by and cluster_by:
        message = "{path} is given together with partition_by"
        fix = "Delta lays out a table in one of the two ways: remove one of them"
        path: KeyPath = ("target", "cluster_by")
        yield Fault(Kind.BAD_VALUE, message, path=path, fix=fix, at_key=True)
    for name in given if size is not None else ():
        if name.lower() == TARGET_FILE_SIZE.lower():
            message = "{path} is given together with file_size"
            at: KeyPath = ("target", "properties", name)
            yield Fault(Kind.TWO_NAMES, message, path=at, fix="remove one of them", at_key=True)


_Rule = Callable[[Columns, Columns | None, str, Names, tuple[Measure, ...], Names], Iterator[Fault]]


def no_text_decides(
    schema: Columns, keys: Names, order_by: Names, metrics: tuple[Measure, ...], names: Names
) -> Iterator[Fault]:
    """No partition column is a text that tells rows apart, or which of two is kept."""
    decides = {*keys, *order_by, *(each.name for each in metrics)}
    texts = {each.name for each in schema if each.kind == "STRING"}
    texts |= {each.name for each in metrics if each.column in texts}
    for index, name in enumerate(names):
        if name in decides & texts:
            message = "{path} names {value}, a text by which rows are told apart or compared"
            fix = "to Delta an empty text is null as the value of a partition: use another column"
            path: KeyPath = ("target", "partition_by", index)
            yield Fault(Kind.COLUMN_TYPE, message, path=path, fix=fix)


def lays_out(setting: str) -> _Rule:
    """The rule that a list of ``target`` names columns of the table that can lay it out."""
    kinds = _PARTITION_KINDS if setting == "partition_by" else _CLUSTER_KINDS

    def faults(
        schema: Columns,
        made: Columns | None,
        mode: str,
        keys: Names,
        metrics: tuple[Measure, ...],
        names: Names,
    ) -> Iterator[Fault]:
        if not names:
            return
        columns, of = made or schema, "target.schema" if made else "schema"
        if SHAPES.by_name[mode].totals:
            try:
                columns, of = table_columns(schema, key_parts(keys), metrics), "the table"
            except (Refused, KeyError):  # other rules tell of that
                return
        known = {each.name: each for each in columns}
        for index, name in enumerate(names):
            path: KeyPath = ("target", setting, index)
            if name not in known:
                message = f"{{path}} names {{value}}, which is not a column of {of}"
                suggestion = closest(name, known)
                fix = "" if suggestion else f"columns: {listed(known)}"
                yield Fault(Kind.NO_COLUMN, message, path=path, suggestion=suggestion, fix=fix)
            elif known[name].kind not in kinds:
                message = f"{{path}} names {{value}}, which is of the type {known[name].kind}"
                fix = f"use a column of one of these: {', '.join(sorted(kinds))}"
                yield Fault(Kind.COLUMN_TYPE, message, path=path, fix=fix)

    return faults
