"""Decoding in the task that writes the rows: Kafka's rows to decoded ones, both in Arrow.

So values do not go through Spark's expressions, and from there to Python again. Imports no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc


class ValuesDecoded(Protocol):
    """What became of values: a row or null for each, and why it is bad, else null."""

    @property
    def rows(self) -> pa.StructArray: ...

    @property
    def reasons(self) -> pa.StringArray: ...


class DecodesValues(Protocol):
    """Decodes values of records, binary. It is pickled on its way to the tasks."""

    def decode(self, values: pa.Array) -> ValuesDecoded:
        """Never raises for what a record holds."""


@dataclass(frozen=True)
class InTask:
    """What a task makes of Kafka's rows; ``code`` is that of values which ``values`` finds bad."""

    values: DecodesValues
    code: str

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of ``decoded`` that an append needs, and ``reason``: what its code does not
        tell, or null.
        """
        value = raw.column("value")
        found = self.values.decode(value)
        empty = pc.fill_null(pc.equal(pc.binary_length(value), 0), False)
        bad = pc.if_else(pc.is_valid(found.reasons), self.code, pa.scalar(None, pa.string()))
        code = pc.if_else(
            pc.is_null(value), "RM601", pc.if_else(pc.fill_null(empty, False), "RM602", bad)
        )
        names = ["topic", "partition", "offset", "timestamp"]
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in names], names)
        columns = {
            "row": found.rows,
            "_kafka": kafka,
            "code": code,
            "reason": found.reasons,
            "key": raw.column("key"),
            "value": value,
        }
        return pa.RecordBatch.from_pydict(columns)
