"""A function of the user as a sink: called on the executors, once for each part of a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

from rivermouth.errors import MissingPackage, NotSent
from rivermouth.protocol.batch import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.registry.references import own
from rivermouth.spark.errors import FAULTS, said
from rivermouth.write.landing import Site

_FAILED = "RM507: the function failed:"
_SAID = re.compile(rf"{_FAILED} (.+)")


class FunctionSink:
    """Calls ``function(rows, batch, partition_id)``. See ``Sink``.

    ``rows`` are dicts of the columns and ``_kafka``. All good records of a Kafka partition are in
    one call, in their order; a call may have several Kafka partitions, one after the other. It is
    called for each batch, so that it can tell whether one is missing.
    """

    every_batch = True

    def __init__(self, site: Site) -> None:
        if site.config is None or site.config.target.foreach_partition is None:
            raise TypeError("this sink needs a function")
        self.name = self._reference = site.config.target.foreach_partition
        own(self._reference)  # what cannot be imported is said before anything is read

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """See ``Sink.send``."""
        in_task = partial(call, self._reference, Batch.of(plan))
        try:
            good.select("row.*", "_kafka").foreachPartition(in_task)
        except FAULTS as fault:
            told = _SAID.search(said(fault))
            if told is None:
                raise
            raise NotSent(
                f"{self._reference} failed in entry {plan.sequence}",
                where=plan.draft.pipeline,
                expected=f"all of {', '.join(map(str, plan.draft.ranges))}",
                found=told[1],
                remedy="Correct the function and run again: it gets all of these records again",
            ) from fault


def call(reference: str, batch: Batch, rows: Iterator[Row]) -> None:
    """Call the function in a task. Raises ImportError where a module is missing there."""
    task = TaskContext.get()
    number = task.partitionId() if task is not None else 0
    try:
        own(reference)((each.asDict(recursive=True) for each in rows), batch, number)
    except ImportError:
        raise
    except MissingPackage as fault:
        raise ImportError(fault.found) from fault
    except Exception as fault:
        raise RuntimeError(f"{_FAILED} {type(fault).__name__}: {fault}") from fault
