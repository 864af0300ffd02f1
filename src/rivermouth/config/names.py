"""Names of tables and pipelines. They are parsed strictly: none can hold a path or SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rivermouth.config.problems import Fault, Kind, Refused

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
