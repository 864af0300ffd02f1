"""Records of Avro to Arrow rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import NO_FIELD, Decoded
from rivermouth.formats.avro import schema as avro
from rivermouth.formats.avro.plan import DoesNotFit, Plan, plan, shares_field, shown
from rivermouth.formats.framing import OTHER_SCHEMA, Bare, Confluent, Schemas
from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.lanes import Lanes
from rivermouth.formats.shredded.reading import (
    Read,
    Settings,
    Unreadable,
    decode,
    row_of,
    settings_of,
)


@dataclass(frozen=True)
class Avro:
    """Decodes records of Avro; it can be pickled.

    ``text`` is the schema of all records; None: each names its own, of ``schemas``, as serialisers
    with a registry write it.
    """

    row: pa.StructType
    settings: Settings
    text: str | None = None
    schemas: Schemas | None = None

    def unfit(self, text: str) -> str:
        """Why no record of a schema can be read; empty where they can."""
        found = reading(text, self.row, self.settings)
        return found.reason if isinstance(found, Unreadable) else ""

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``. Raises SchemasUnknown."""
        reader = partial(reading, row=self.row, settings=self.settings)
        if self.text is not None:
            return decode(values, self.row, Bare(reader(self.text)))
        return decode(values, self.row, Confluent(self.schemas or {}, reader))


@lru_cache(maxsize=1_000)
def reading(text: str, row: pa.StructType, settings: Settings) -> Read | Unreadable:
    """How records of a writer's schema are read, or why none of them can be."""
    try:
        writer = avro.parse(text)
        if not (settings.empty or shares_field(writer, row, settings)):
            return Unreadable(NO_FIELD, f"{shown(writer)} has none of the columns")
        return partial(_rows, plan(writer, row, settings))
    except (avro.BadSchema, DoesNotFit) as fault:
        return Unreadable(OTHER_SCHEMA, str(fault))
    except RecursionError:
        return Unreadable(OTHER_SCHEMA, "the schema is nested too deeply")


def _rows(how: Plan, lanes: Lanes, site: Site) -> pa.StructArray:
    found = how.grammar.shred(lanes)
    lanes.refuse(lanes.at < lanes.end, "bytes follow after the value")
    rows: pa.StructArray = how.make(found, site)
    if rows.null_count:  # a union has null
        site.refuse(rows.is_null().to_numpy(zero_copy_only=False), "null instead of a record")
    return rows


def decoder(columns: Sequence[Column], settings: Mapping[str, Any]) -> Avro:
    """What decodes values that are records of Avro."""
    text, schemas = settings.get("schema_file"), settings.get("schemas", {})
    return Avro(row_of(columns), settings_of(settings), text, schemas)
