"""Where a pipeline that sends can run: what its target and its delivery need of a platform.

The file does not say where it will run, so ``validate`` cannot tell. ``doctor`` does, and each
opening of the pipeline, before anything is read.
"""

from __future__ import annotations

from rivermouth.config.pipeline import Pipeline
from rivermouth.config.platforms import Capability, Platform
from rivermouth.config.sinks import Delivery
from rivermouth.errors import SinkUnsupported


def check_platform(pipeline: Pipeline, platform: Platform) -> None:
    """Raise SinkUnsupported where what the pipeline promises cannot be kept on the platform."""
    where = f"pipeline {pipeline.name}"
    found = f"the platform {platform.name}"
    if pipeline.delivery is Delivery.AT_MOST_ONCE and not platform.has(Capability.ONE_HOST):
        raise SinkUnsupported(
            "delivery: at-most-once is only possible where driver and executors are one machine",
            where=where,
            found=f"{found}, where Spark may run a task again, which sends its rows again",
            remedy="Write delivery: at-least-once",
        )
    function = pipeline.target.foreach_partition
    if function is not None and not platform.has(Capability.CACHE):
        raise SinkUnsupported(
            "foreach_partition needs Spark's JVM in the driver's process",
            where=where,
            found=f"{found}, where the parts of a batch are no Kafka partitions",
            remedy="Use a cluster in dedicated mode, or send to kafka",
        )
