"""A session beside the running one."""

from __future__ import annotations

from pyspark.sql import SparkSession


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
