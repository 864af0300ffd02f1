"""Names of tables, pipelines and catalogs, parsed strictly: none can hold a path or SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from rivermouth.config.problems import Fault, Kind, Refused, closest

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
PIPELINE = r"[a-z][a-z0-9_]{0,62}"
_PIPELINE_FORM = "use a-z, 0-9 and _, a letter first, at most 63 characters"
QUARANTINE = "_quarantine"
LONGEST_GROUP = 255
"""Characters of the name of a consumer group."""


@dataclass(frozen=True, order=True)
class TableName:
    """``schema.name``; both are identifiers. Raises ``Refused`` for anything else."""

    schema: str
    name: str

    def __post_init__(self) -> None:
        for part in (self.schema, self.name):
            if not re.fullmatch(IDENTIFIER, part, re.ASCII):
                message = "{path} must be schema.table, not {value}"
                fix = "each part is letters, digits and _, no digit first, at most 128"
                raise Refused(Fault(Kind.BAD_VALUE, message, fix=fix))

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read ``silver.orders``; raises ``Refused``."""
        schema, _, name = text.partition(".")
        return cls(schema, name)

    @property
    def quarantine(self) -> TableName:
        """The table for the records that this one cannot take."""
        return TableName(self.schema, self.name + QUARANTINE)

    def path(self, warehouse: Path) -> Path:
        """The folder of the table in a local warehouse."""
        return warehouse / self.schema / self.name

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


OFFSETS_TABLE = TableName("rivermouth", "offsets")


def read_table(value: object) -> TableName:
    """A target from its text; raises ``Refused``."""
    if isinstance(value, TableName):
        return value
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be text like silver.orders, not {value}"))
    table = TableName.parse(value)
    if len(table.name) > 128 - len(QUARANTINE):
        message = "{path} is too long: the name of the table may have 117 characters"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=f"{QUARANTINE} is appended to it"))
    return table


def read_pipeline_name(value: str) -> str:
    """The name of a pipeline, which is part of the identity of its ledger; raises ``Refused``."""
    if not re.fullmatch(PIPELINE, value, re.ASCII):
        message = "{path} is not a pipeline name"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=_PIPELINE_FORM, at_key=True))
    return value


def read_group(value: object) -> str:
    """The name of a consumer group; raises ``Refused``.

    Kafka itself takes any text. But a name of many kilobytes makes a broker drop the connection.
    """
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be text, not {value}"))
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_GROUP:
        message = "{path} is not the name of a consumer group: {value}"
        fix = f"write 1 to {LONGEST_GROUP} printable characters, not only spaces"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=fix))
    return value


def read_ledger_name(value: object) -> str:
    """The name that a pipeline has in its ledger; raises ``Refused``."""
    if isinstance(value, str) and re.fullmatch(PIPELINE, value, re.ASCII):
        return value
    kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    raise Refused(Fault(kind, "{path} must be a pipeline name, not {value}", fix=_PIPELINE_FORM))


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,254}")


@dataclass(frozen=True)
class Catalog:
    """Names in Unity Catalog, on Databricks."""

    catalog: Annotated[str, Field(description="The catalog of all tables.", examples=["main"])]
    schema: Annotated[
        str, Field(description="The schema of the offsets table and of the volume.")
    ] = "rivermouth"
    volume: Annotated[
        str, Field(description="The volume for files that a run needs only while it runs.")
    ] = "state"
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


KEYS = tuple(each.name for each in fields(Catalog))


def read_catalog(value: Mapping[str, object]) -> Catalog:
    """The names under ``warehouse``. Raises ``Refused`` with all their faults."""
    faults: list[Fault] = []
    for key in value:
        if key not in KEYS:
            guess = closest(key, KEYS)
            message = "{path} is not known"
            faults.append(
                Fault(Kind.UNKNOWN_KEY, message, path=(key,), suggestion=guess, at_key=True)
            )
    if "catalog" not in value:
        fix = "write catalog: main, or a folder instead of the mapping"
        faults.append(Fault(Kind.MISSING_KEY, "{path} lacks the key catalog", fix=fix, at_key=True))
    names = {key: value[key] for key in KEYS if key in value}
    for key, name in names.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = "{path} must be the name of a " + key + ", not {value}"
            fix = "use letters, digits, _ and -"
            faults.append(Fault(Kind.BAD_VALUE, message, path=(key,), fix=fix))
    if faults:
        raise Refused(*faults)
    return Catalog(**{key: str(name) for key, name in names.items()})


def offsets_table_faults(warehouse: object, tables: Mapping[str, TableName]) -> Iterator[Fault]:
    """A fault for each pipeline of ``tables`` whose target is the offsets table of a catalog."""
    if not isinstance(warehouse, Catalog):
        return
    taken = (warehouse.schema.lower(), OFFSETS_TABLE.name)
    for name, table in tables.items():
        if (table.schema.lower(), table.name.lower()) == taken:
            message, path = "{path} is the offsets table", ("pipelines", name, "target", "table")
            yield Fault(Kind.RESERVED_TABLE, message, path=path, fix="choose another name")
