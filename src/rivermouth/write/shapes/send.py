"""Send: every good record goes to a sink, and only the ledger is in a table."""

from __future__ import annotations

from rivermouth.config import Delivery, Pipeline
from rivermouth.write.rows import Sent
from rivermouth.write.transform.transform import transform_of

_KAFKA = "rivermouth.write.sinks.kafka:KafkaSink"
_FUNCTION = "rivermouth.write.sinks.function:FunctionSink"


def send(pipeline: Pipeline) -> Sent:
    """To the sink that the target names, before the commit or after it."""
    return Sent(
        sink=_KAFKA if pipeline.target.kafka is not None else _FUNCTION,
        first=pipeline.delivery is Delivery.AT_LEAST_ONCE,
        transform=transform_of(pipeline),
    )
