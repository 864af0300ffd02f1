"""A lake whose pipelines run in the session of the tests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.errors import RivermouthError
from tests.faults.outcomes import refusal, went_well
from tests.lake import Heard, Lake, append_pipeline, continuous


@dataclass
class SparkLake(Lake):
    """Its pipeline is ``p``, where no name is given."""

    spark: SparkSession

    def go(self, *names: str, heard: Heard | None = None, audit: bool = False) -> Heard:
        """Run pipelines to the end of their topics; all go well."""
        return went_well(self.run(self.spark, *(names or ("p",)), heard=heard, audit=audit))

    def refused(
        self, name: str = "p", *, heard: Heard | None = None, audit: bool = False
    ) -> RivermouthError:
        """Run a pipeline, and return the error that it ends with."""
        return refusal(self.run(self.spark, name, heard=heard, audit=audit))

    def continuous(self, *names: str) -> AbstractContextManager[Heard]:
        """Pipelines that run until the block ends, or until they fail."""
        return continuous(self, self.spark, *names)

    def ready(self, topic: str, partitions: int = 1, records: int = 5, **source: Any) -> Path:
        """Let ``p`` append the bids of a new topic; returns its table."""
        self.topic(topic, partitions)
        config = self.configure(p=append_pipeline(topic, **source))
        self.bids(topic, records, partitions)
        return self.path(str(config.pipelines["p"].target.table))

    def filled(self, topic: str, partitions: int = 1) -> Path:
        """The same, once five bids were read."""
        table = self.ready(topic, partitions)
        self.go()
        return table
