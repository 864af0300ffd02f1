"""Names in Unity Catalog, where the tables are on Databricks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from rivermouth.config.names import OFFSETS_TABLE, TableName
from rivermouth.config.problems import Fault, Kind, Refused, closest

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
