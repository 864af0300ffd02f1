"""Where Spark finds a Delta table: at a path, or under a name in a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


@dataclass(frozen=True)
class Address:
    """One table; exactly one of ``path`` and ``name`` (catalog, schema, table) is given."""

    path: str = ""
    name: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """As a statement names it, quoted."""
        if self.path:
            return f"delta.{quoted(self.path)}"
        return ".".join(quoted(each) for each in self.name)

    def read(self, session: SparkSession) -> DataFrame:
        """Its newest state."""
        if self.path:
            return session.read.format("delta").load(self.path)
        return session.read.table(self.sql)

    def at(self, session: SparkSession, version: int) -> DataFrame:
        """Its state at a version."""
        return session.sql(f"SELECT * FROM {self.sql} VERSION AS OF {version:d}")

    def write(self, writer: DataFrameWriter) -> None:
        """Carry out a write to it."""
        if self.path:
            writer.format("delta").save(self.path)
        else:
            writer.format("delta").saveAsTable(self.sql)

    def __str__(self) -> str:
        return self.path or ".".join(self.name)


def create_table(session: SparkSession, address: Address, columns: str, more: str = "") -> None:
    """Create a Delta table with ``columns`` (SQL), if missing; ``more`` ends the statement.

    Of two drivers that create it at once, one may be told so by an error: see
    ``warehouse.creation``.
    """
    session.sql(f"CREATE TABLE IF NOT EXISTS {address.sql} ({columns}) USING delta {more}")


def table_property(session: SparkSession, address: Address, name: str) -> str:
    """What the table's property of that name says; empty where there is none."""
    shown = session.sql(f"SHOW TBLPROPERTIES {address.sql}").collect()
    return next((str(each["value"]) for each in shown if each["key"] == name), "")


def set_table_property(session: SparkSession, address: Address, name: str, value: str) -> None:
    """Set it, in a commit of its own."""
    pair = f"{literal(name)} = {literal(value)}"
    session.sql(f"ALTER TABLE {address.sql} SET TBLPROPERTIES ({pair})")


def quoted(name: str) -> str:
    """A SQL identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A SQL text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
