"""Every good record becomes a row: of the table, or one that is sent."""

from __future__ import annotations

from pyspark.sql import functions as F

from rivermouth.config import Delivery, Pipeline
from rivermouth.write.rows import Plain, Sent
from rivermouth.write.transform import transform_of


def append(pipeline: Pipeline) -> Plain:
    """The configured columns, as they were decoded, and the code that makes others of them."""
    row = F.col("row")
    columns = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
    return Plain(columns, transform_of(pipeline))


_KAFKA = "rivermouth.write.sinks:KafkaSink"
_FUNCTION = "rivermouth.write.sinks:FunctionSink"


def send(pipeline: Pipeline) -> Sent:
    """To the sink that the target names, before the commit or after it."""
    return Sent(
        sink=_KAFKA if pipeline.target.kafka is not None else _FUNCTION,
        first=pipeline.delivery is Delivery.AT_LEAST_ONCE,
        transform=transform_of(pipeline),
    )
