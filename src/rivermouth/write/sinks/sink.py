"""The port of a sink."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame

from rivermouth.protocol.commits import CommitPlan


class Sink(Protocol):
    """Takes the good rows of a batch. ``name`` says in messages what it is."""

    @property
    def name(self) -> str: ...

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """Return once the sink has acknowledged every row of a decoded batch.

        Raises where it has not: then some rows may be there and others not.
        """
