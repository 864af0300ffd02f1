"""The port of a sink."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan


class Sink(Protocol):
    """Takes the good rows of a batch. ``name`` says in messages what it is.

    ``every_batch``: it is also given the batches in which no row is good.
    """

    @property
    def name(self) -> str: ...

    @property
    def every_batch(self) -> bool: ...

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """Return once the sink has acknowledged every row of a decoded batch.

        Raises where it has not: then some rows may be there and others not.
        """
