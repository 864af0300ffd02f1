"""What a check is given: where the tables lie, what they should hold, what the producer noted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

Place = tuple[str, int]
"""A topic and a partition."""

FORMS = ("json", "avro", "protobuf", "debezium")
TYPES = {"BIGINT": pa.int64(), "STRING": pa.string()}


def later(place: Place, sequence: int) -> Place:
    """The place once its offsets mean other records, which began with an entry.

    Kafka allows no ``~`` in a topic's name, so no topic has such a name of its own.
    """
    return f"{real(place)[0]}~{sequence}", place[1]


def real(place: Place) -> Place:
    """The place as Kafka and the rows name it, whatever its offsets mean."""
    return place[0].partition("~")[0], place[1]


def shown(place: Place) -> str:
    """``topic-partition``, as people write it."""
    return f"{place[0]}-{place[1]}"


@dataclass(frozen=True)
class Watched:
    """One pipeline and what its table should hold.

    ``columns`` are (name, ``BIGINT`` or ``STRING``). With ``keys`` the table holds a row per
    key, else a row per record. ``key_format`` is how the message key of a tombstone names the
    keys: ``long``, ``string``, ``json``, or None for no tombstones. ``earliest``: a partition
    is read from its first offset on. ``form`` is one of ``FORMS``: how values are written.
    """

    name: str
    topics: tuple[str, ...]
    table: Path
    quarantine: Path
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    key_format: str | None = None
    earliest: bool = True
    form: str = "json"

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if unknown := {kind for _, kind in self.columns} - TYPES.keys():
            raise ValueError(f"no such type here: {sorted(unknown)}")
        if missing := {*self.keys, *self.order_by} - {*names}:
            raise ValueError(f"no such column: {sorted(missing)}")
        if self.key_format not in (None, "long", "string", "json"):
            raise ValueError(f"no such key format: {self.key_format}")
        if self.form not in FORMS:
            raise ValueError(f"no such form: {self.form}")


@dataclass(frozen=True)
class Evidence:
    """Everything that a check looks at. ``pipelines`` are all that write their tables.

    ``history`` are the producer's JSON lines (see ``history``), ``snapshots`` a reader's (see
    ``reader``). ``texts`` are files and folders that may not contain any of ``secrets``; the
    logs of the tables are searched as well. ``settled``: the last run came to its end, so
    that nothing may be left to take up or to project.
    """

    servers: str
    warehouse: Path
    pipelines: tuple[Watched, ...]
    history: Path | None = None
    snapshots: Path | None = None
    texts: tuple[Path, ...] = ()
    secrets: tuple[str, ...] = ()
    settled: bool = True

    @property
    def offsets(self) -> Path:
        """Where the offsets table lies."""
        return self.warehouse / "rivermouth" / "offsets"
