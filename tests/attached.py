"""Drivers in the JVM of a session that is there: warm ones, for tests that kill many of them.

A driver attaches as a notebook does on a cluster, and is killed as a process of its own. The JVM
outlives it. What a dead JVM would give back is given back when the driver has ended: its queries
are stopped, the files that it had open, such as the lock of a table, are closed, and Delta forgets
the tables with their locks.

Not for kills while the JVM may be amid a commit (P8, and where no point is named): it has to die,
too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

ALIVE = frozenset(f"P{n}" for n in range(23) if n not in (4, 5, 8))
"""The points at which a driver may die while its JVM lives on."""


@contextmanager
def gateway(spark: SparkSession) -> Iterator[Mapping[str, str]]:
    """What a driver's environment needs to attach to the JVM of ``spark``, within the block.

    The driver must have ended when the block does.
    """
    context = spark.sparkContext
    jvm: Any = context._jvm
    server = jvm.org.apache.spark.api.python.Py4JServer(context._jsc.sc().conf())
    server.start()
    running = {*_queries(spark)}
    try:
        there = {_PORT: str(server.getListeningPort()), _SECRET: server.secret()}
        yield {**there, "PYSPARK_PYTHON": context.pythonExec}
    finally:
        for name, query in _queries(spark).items():
            if name not in running:
                query.stop()
        for each in server.server().getJavaServer().getGateway().getBindings().values():
            if hasattr(each, "getClass") and each.getClass().getName().endswith("FileChannelImpl"):
                each.close()
        server.shutdown()
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _queries(spark: SparkSession) -> dict[str, Any]:
    """The streaming queries that run in the JVM, whoever began them, by their run ids."""
    state: Any = spark._jsparkSession.sharedState()
    queries = state.activeStreamingQueries().values()  # null: it has ended meanwhile
    return {str(each.runId()): each for each in queries if each is not None}


def is_attached() -> bool:
    """Whether this process is to attach to a JVM."""
    return _PORT in os.environ


def attach() -> SparkSession:
    """A session of its own in the JVM that the environment names."""
    launch: Any = java_gateway.launch_gateway
    found = launch()
    jvm = found.jvm
    java = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=found, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    classic = jvm.org.apache.spark.sql.classic.SparkSession
    return SparkSession(context, classic.getDefaultSession().get().newSession())
