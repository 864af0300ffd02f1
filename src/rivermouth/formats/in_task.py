"""Decoding in the task that writes or folds the rows: Kafka's rows to decoded ones, in Arrow.

So values do not go through Spark's expressions, and from there to Python again. Imports no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.decoded import PLACE
from rivermouth.formats.in_arrow import InArrow, absent
from rivermouth.registry.references import resolve

if TYPE_CHECKING:
    from rivermouth.config import Pipeline


@dataclass(frozen=True)
class InTask:
    """What a task makes of Kafka's rows; ``code`` is that of values which ``values`` finds bad.

    ``kafka`` are the columns of these rows that stand in ``_kafka``, in this order.
    """

    values: InArrow
    code: str
    kafka: tuple[str, ...] = PLACE

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of ``decoded`` that an append or totals need, and ``reason``: what its code
        does not tell, or null.
        """
        value = raw.column("value")
        found, code = self.values.decode(value), absent(value)
        if found.reasons.null_count < len(value):
            bad = pc.if_else(pc.is_valid(found.reasons), self.code, pa.scalar(None, pa.string()))
            code = pc.coalesce(code, bad)
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in self.kafka], self.kafka)
        columns = {
            "row": found.rows,
            "_kafka": kafka,
            "code": code,
            "reason": found.reasons,
            "key": raw.column("key"),
            "value": value,
        }
        return pa.RecordBatch.from_pydict(columns)


def in_task_of(pipeline: Pipeline) -> InTask | None:
    """What decodes the pipeline's values in a task; None where Spark has to decode them."""
    if pipeline.format.in_task is None:
        return None
    made: InTask = resolve(pipeline.format.in_task)(pipeline)
    return made
