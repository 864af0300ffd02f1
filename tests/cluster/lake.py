"""Lakes in a real object store whose drivers run their tasks on a real cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.config.options import PYTHON
from rivermouth.local.standalone import LocalCluster
from tests.stores.lake import StoredLake


def settings_on(cluster: LocalCluster, **more: str) -> dict[str, str]:
    """``spark`` of a configuration: two executors, on each worker one.

    They run the Python of the tests, so nothing is packed.
    """
    return {
        **cluster.settings,
        PYTHON: sys.executable,
        "spark.cores.max": "2",
        "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **more,
    }


RETIRES = {"spark.decommission.enabled": "true", "spark.task.maxFailures": "8"}
"""Settings with which executors may be retired, and many be lost in one batch."""


def overcommitted() -> LocalCluster:
    """A cluster on which several drivers find room at once: each takes two of the cores."""
    return LocalCluster(2, cores=6, memory="8g", environ=environment())


def environment() -> Mapping[str, str]:
    """That of the workers: executors import what the tests import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@dataclass
class ClusterLake(StoredLake):
    """A lake in a store; ``spark`` of its configuration names ``cluster``."""

    cluster: LocalCluster = field(kw_only=True)
    more: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Further settings of the session."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings = {**self.settings, "spark": settings_on(self.cluster, **self.more)}
