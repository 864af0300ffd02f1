"""Sessions beside the running one, and threads beside the one that a session works in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial

from pyspark.sql import SparkSession

_PATH = "PYTHONPATH"

POOL = "spark.scheduler.pool"
"""The property of a thread that says in which pool its jobs are scheduled."""


def separate(session: SparkSession) -> SparkSession:
    """A session with the settings that ``session`` has now, and with none that it gets later.

    The other way round as well: neither sees the settings and temporary views of the other one.
    Not for Spark Connect.
    """
    own = session.newSession()
    for name, value in session.conf.getAll.items():
        if own.conf.get(name, None) != value:  # it was set since Spark began
            own.conf.set(name, value)
    return own


def import_from(session: SparkSession, folders: Iterable[str]) -> None:
    """Let the Python workers of this machine import from ``folders``, also those of a session that
    runs already: it gives each function the environment of its workers. Not for Spark Connect.
    """
    environ = session.sparkContext.environment
    known = [each for each in environ.get(_PATH, "").split(os.pathsep) if each]
    if found := dict.fromkeys([*known, *folders]):
        environ[_PATH] = os.pathsep.join(found)


def same_pool(session: SparkSession) -> Callable[[], object]:
    """What gives another thread the scheduling pool of the one that asks. Not for Spark Connect."""
    context = session.sparkContext
    pool = context.getLocalProperty(POOL)
    return partial(context.setLocalProperty, POOL, pool) if pool else lambda: None
