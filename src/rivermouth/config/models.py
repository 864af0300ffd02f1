"""The configuration as values: frozen, strict, complete.

The fields of these models are the one list of settings, see ``written``. ``shape`` turns the
file's own words (aliases, options given in place) into them; ``loader`` reports problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from rivermouth.config.alerts import Alerts, alerts_faults
from rivermouth.config.bucket import Bucket, storage_faults
from rivermouth.config.names import Catalog, TableName, offsets_table_faults
from rivermouth.config.options import MASTER, catalog_faults
from rivermouth.config.pipeline import TEN_SECONDS, Pipeline, Pipelines, RetryTimes, Trigger
from rivermouth.config.problems import checked, closest
from rivermouth.config.retry import Retry
from rivermouth.config.secret import Secret, SecretName, Secrets
from rivermouth.config.settings import InPlace, Model, Unwritten, given
from rivermouth.config.shared_rules import in_bucket, shared_faults, without_registry
from rivermouth.config.value_types import (
    KafkaOptions,
    OffsetsRetention,
    RegistryOptions,
    SparkConf,
    StorageOptions,
    Version,
    Warehouse,
)
from rivermouth.errors import ConfigError


class Client(Model):
    """Options of a client, word for word and without a prefix.

    Values under sensitive names, and those that refer to secrets, are ``Secret``.
    """

    options: Annotated[Mapping[str, str | Secret], InPlace()]

    @property
    def secret_names(self) -> list[SecretName]:
        """The secrets that the options refer to, each once, in order."""
        held = (each for each in self.options.values() if isinstance(each, Secret))
        return sorted({name for each in held for name in each.names})

    def revealed(self, secrets: Secrets) -> dict[str, str]:
        """The options with their secrets as plain text: only for the moment of use.

        ``secrets`` reads each secret that the file names; what it raises is raised here too.
        """
        return {
            name: value.reveal(secrets) if isinstance(value, Secret) else value
            for name, value in self.options.items()
        }


class Kafka(Client):
    """Options of the Kafka client."""

    options: Annotated[KafkaOptions, InPlace()]

    @property
    def bootstrap_servers(self) -> str:
        return str(self.options["bootstrap.servers"])


class SchemaRegistry(Client):
    """Options of confluent-kafka's client of schema registries."""

    options: Annotated[RegistryOptions, InPlace()]

    @property
    def url(self) -> str:
        """The addresses: several with commas."""
        return str(self.options["url"])


class Storage(Client):
    """Options of the client of an object store, as object_store calls them."""

    options: Annotated[StorageOptions, InPlace()]


C = TypeVar("C", bound=Client)


def _without_secrets(client: C) -> C:
    plain = {each: value for each, value in client.options.items() if isinstance(value, str)}
    return client.model_copy(update={"options": plain})


class Config(Model):
    """A whole configuration file: one cluster, one warehouse, and pipelines by name."""

    version: Version = Field(description="The version of this format.")
    kafka: Kafka = Field(
        description="Options of the Kafka client, word for word and without a prefix."
    )
    schema_registry: SchemaRegistry | None = Field(
        default=None,
        description="Options of confluent-kafka's client of schema registries, word for word: where"
        " the schemas are that framed values name.",
    )
    warehouse: Warehouse = Field(
        description="Where the tables are: in a folder, in a bucket of an object store, or on"
        " Databricks in a catalog.",
        examples=["./lake", "s3://bucket/lake", {"catalog": "main"}],
    )
    storage: Storage | None = Field(
        default=None,
        description="Options of the client of the object store, see docs/stores.md. What it lacks"
        " is taken from the platform.",
    )
    trigger: Trigger = TEN_SECONDS
    retry: RetryTimes = Retry()
    offsets_retention: OffsetsRetention = None
    spark: SparkConf = Field(
        default={},
        description="Settings of the Spark session that a command starts, word for word."
        " `spark.master` says on which cluster; without it tasks run on this machine.",
        examples=[{"spark.driver.memory": "8g"}],
    )
    alerts: Alerts | None = Field(
        default=None, description="Who is told when a pipeline needs somebody, see docs/alerts.md."
    )
    pipelines: Pipelines = Field(
        description="The pipelines by name, at least one.",
        json_schema_extra={"minProperties": 1, "additionalProperties": False},
    )
    path: Annotated[Path, Unwritten()]

    @property
    def master(self) -> str:
        """The master of the cluster on which tasks run; empty: they run on this machine."""
        return self.spark.get(MASTER, "")

    @property
    def files(self) -> Path | Bucket:
        """Where the tables lie as files. Raises ConfigError where they are in a catalog."""
        return self.files_or(_IN_A_CATALOG)

    def files_or(self, remedy: str) -> Path | Bucket:
        """The same; ``remedy`` is what the error tells to do."""
        if not isinstance(self.warehouse, Catalog):
            return self.warehouse
        where = f"{self.path}: the tables are in the catalog {self.warehouse.catalog}"
        raise ConfigError((f"{where}, and this command needs them as files — {remedy}",))

    def without_secrets(self) -> Config:
        """Without options whose values are a ``Secret``, which cannot be pickled."""
        registry, storage = self.schema_registry, self.storage
        return self.model_copy(
            update={
                "kafka": _without_secrets(self.kafka),
                "schema_registry": registry and _without_secrets(registry),
                "storage": storage and _without_secrets(storage),
                "alerts": None,
            }
        )

    def writers(self, table: TableName) -> list[Pipeline]:
        """The pipelines whose target it is, in the order of the file."""
        return [each for each in self.pipelines.values() if each.target.table == table]

    def selected(self, select: str | Iterable[str] | None, option: str = "--select") -> list[str]:
        """The names in ``select``, in the order of the file.

        ``select`` is a text with commas, or names. All pipelines are selected by None and by a
        text without a name; no names select none. A renamed pipeline may also be called by the name
        in its ledger, which messages may give. Raises ConfigError with one line for each name that
        is not configured; the lines call the argument ``option``.
        """
        names = (select or "").split(",") if select is None or isinstance(select, str) else None
        given = [name.strip() for name in (names or select or ()) if name.strip()]
        wanted = self._configured(given, option)
        everything = names is not None and not wanted
        return [name for name in self.pipelines if everything or name in wanted]

    def named(self, pipeline: str) -> str:
        """The name of the pipeline that the argument PIPELINE gives, as it is configured.

        Raises ConfigError.
        """
        [name] = self._configured([pipeline.strip()], "PIPELINE")
        return name

    def _configured(self, given: Iterable[str], option: str) -> list[str]:
        """The configured names of the pipelines that ``option`` gives. Raises ConfigError."""
        ledgers = {each.ledger_name: name for name, each in self.pipelines.items()}
        wanted = [ledgers.get(name, name) for name in given]
        unknown = [name for name in wanted if name not in self.pipelines]
        if unknown:
            raise ConfigError(tuple(_unknown(option, name, self.pipelines) for name in unknown))
        return wanted

    @model_validator(mode="after")
    def _pipelines_go_together(self) -> Config:
        tables = {name: pipeline.target.table for name, pipeline in self.pipelines.items()}
        ours = offsets_table_faults(self.warehouse, tables)
        found = {name: given(pipeline) for name, pipeline in self.pipelines.items()}
        spark = catalog_faults(self.warehouse, self.spark)
        schemas = [] if self.schema_registry else without_registry(found)
        options = None if self.storage is None else self.storage.options
        stored = [*storage_faults(self.warehouse, options)]
        stored += in_bucket(found) if isinstance(self.warehouse, Bucket) else ()
        stored += alerts_faults(self.warehouse, self.alerts)
        return checked(self, [*shared_faults(found), *ours, *spark, *schemas, *stored])


_IN_A_CATALOG = "use the jobs of the bundle: databricks bundle run, see docs/databricks.md"


def _unknown(option: str, name: str, known: Iterable[str]) -> str:
    guess = closest(name, known)
    meant = f' — did you mean "{guess}"?' if guess else "."
    return f'{option}: there is no pipeline "{name}"{meant} Configured: {", ".join(known)}'
