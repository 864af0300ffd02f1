"""The configuration as values: frozen, strict, complete.

The fields of these models are the one list of settings, see ``written``. ``shape`` turns the
file's own words (aliases, options given in place) into them; ``loader`` reports problems.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from rivermouth.config.catalog import offsets_table_faults
from rivermouth.config.kafka import Kafka
from rivermouth.config.names import TableName
from rivermouth.config.pipeline import (
    TEN_SECONDS,
    Pipeline,
    Pipelines,
    RetryTimes,
    Trigger,
)
from rivermouth.config.problems import checked
from rivermouth.config.retry import Retry
from rivermouth.config.shared_rules import shared_faults
from rivermouth.config.sound import given
from rivermouth.config.spark_conf import catalog_faults
from rivermouth.config.value_types import (
    OffsetsRetention,
    SparkConf,
    Version,
    Warehouse,
)
from rivermouth.config.written import Model, Unwritten
from rivermouth.errors import ConfigError


class Config(Model):
    """A whole configuration file: one cluster, one warehouse, and pipelines by name."""

    version: Version = Field(description="The version of this format.")
    kafka: Kafka = Field(
        description="Options of the Kafka client, word for word and without a prefix."
    )
    warehouse: Warehouse = Field(
        description="Where the tables are: in a folder, or on Databricks in a catalog.",
        examples=["./lake", {"catalog": "main"}],
    )
    trigger: Trigger = TEN_SECONDS
    retry: RetryTimes = Retry()
    offsets_retention: OffsetsRetention = None
    spark: SparkConf = Field(
        default={},
        description="Settings of the Spark session that a command starts on this machine, word"
        " for word.",
        examples=[{"spark.driver.memory": "8g"}],
    )
    pipelines: Pipelines = Field(
        description="The pipelines by name, at least one.",
        json_schema_extra={"minProperties": 1, "additionalProperties": False},
    )
    path: Annotated[Path, Unwritten()]

    @property
    def folder(self) -> Path:
        """The folder of the tables. Raises ConfigError where they are in a catalog."""
        return self.folder_or(_IN_A_CATALOG)

    def folder_or(self, remedy: str) -> Path:
        """The same; ``remedy`` is what the error tells to do."""
        if isinstance(self.warehouse, Path):
            return self.warehouse
        where = f"{self.path}: the tables are in the catalog {self.warehouse.catalog}"
        raise ConfigError((f"{where}, and this command needs a folder — {remedy}",))

    def without_secrets(self) -> Config:
        """Without the Kafka options whose values are a ``Secret``, which cannot be pickled."""
        options = self.kafka.options
        plain = {each: value for each, value in options.items() if isinstance(value, str)}
        return self.model_copy(update={"kafka": self.kafka.model_copy(update={"options": plain})})

    def writers(self, table: TableName) -> list[Pipeline]:
        """The pipelines whose target it is, in the order of the file."""
        return [each for each in self.pipelines.values() if each.target.table == table]

    @model_validator(mode="after")
    def _pipelines_go_together(self) -> Config:
        tables = {name: pipeline.target.table for name, pipeline in self.pipelines.items()}
        ours = offsets_table_faults(self.warehouse, tables)
        found = {name: given(pipeline) for name, pipeline in self.pipelines.items()}
        spark = catalog_faults(self.warehouse, self.spark)
        return checked(self, [*shared_faults(found), *ours, *spark])


_IN_A_CATALOG = "use the jobs of the bundle: databricks bundle run, see docs/databricks.md"
