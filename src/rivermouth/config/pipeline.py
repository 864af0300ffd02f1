"""A pipeline as values, with what it reads and what it writes: frozen, strict, complete.

It is a part of the models in ``models``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from rivermouth.config.columns import Column
from rivermouth.config.each import Each, of_table, records
from rivermouth.config.encoding import Framing, framing_of, schema_text
from rivermouth.config.envelope import TOLD, Events, events_of, message_key_fields
from rivermouth.config.formats import FORMATS, Format, KeyForm
from rivermouth.config.layout import ClusterBy, FileSize, PartitionBy
from rivermouth.config.paths import PLAIN, ROOT, Fields, From, reading, written
from rivermouth.config.platforms import Capability, Platform
from rivermouth.config.problems import Fault, Kind, Refused, checked
from rivermouth.config.registry import SHAPES, Shape
from rivermouth.config.retry import Retry
from rivermouth.config.rules import pipeline_faults
from rivermouth.config.settings import Instead, Model, Unwritten, given
from rivermouth.config.sinks import (
    SINKS,
    Delivery,
    DeliveryChoice,
    ForwardHeaders,
    HeaderColumns,
    MessageKey,
    PartitionColumn,
    SinkFunction,
    SinkTopics,
    TopicColumn,
    by_itself,
    sink_identity,
)
from rivermouth.config.source import Source
from rivermouth.config.totals import KeyPart, key_parts, table_columns
from rivermouth.config.transform import Explode, MadeColumns, Select, Transform
from rivermouth.config.value_types import (
    Columns,
    CommitChoice,
    Duration,
    Keys,
    LedgerName,
    Metrics,
    OrderBy,
    PipelineName,
    Properties,
    SchemaChange,
    ShapeName,
    Table,
)
from rivermouth.config.values import Commit, OnDelete, OnEmpty, OnSchemaChange, Tombstones
from rivermouth.errors import SinkUnsupported

_BY_ITSELF = (None, Tombstones.SKIP)
JsonValue = str | bool | list[str] | None

Trigger = Annotated[
    Duration,
    Field(
        description="How often a batch starts in `run --continuous`. If a batch takes longer,"
        " the next one starts as soon as it is done.",
        examples=["10s", "500ms", "2m"],
    ),
]
RetryTimes = Annotated[
    Retry, Field(description="How long a run tries again what may pass by itself.")
]
TEN_SECONDS = timedelta(seconds=10)


class Target(Model):
    """What a pipeline writes: a table, or instead of it a sink to which it sends records."""

    table: Annotated[Table, Instead(SINKS)] = Field(
        description="The table; or instead of it `kafka` or `foreach_partition`. The schema"
        " `rivermouth` and names that end in `_quarantine` are reserved.",
        examples=["silver.orders"],
    )
    mode: ShapeName = Field(default="append", description="What the records become.")
    keys: Keys = Field(
        default=(),
        description="The columns that identify a row. Their types are primitive and not floating"
        " point. A key of totals may be a window of time.",
        examples=[["order_id"], ["bidder", "window(at, '1 hour')"]],
    )
    metrics: Metrics = Field(
        default=(),
        description="What is measured of each key: columns by name, each with its aggregate.",
        examples=[{"spent": "sum(price)", "n": "count()", "last": "max(at)"}],
    )
    order_by: OrderBy = Field(
        default=(),
        description="The row with the greater value is newer. If they are equal, Kafka partition"
        " and offset decide. If the list is empty, the row that was read later is newer; in one"
        " batch, partition and offset decide.",
        examples=[["updated_at"]],
    )
    columns: MadeColumns = None
    explode: Explode = False
    partition_by: PartitionBy = ()
    cluster_by: ClusterBy = ()
    file_size: FileSize = None
    properties: Properties = Field(
        default_factory=dict, description="Delta table properties, set when the table is created."
    )
    kafka: SinkTopics = None
    topic_column: TopicColumn = None
    partition_column: PartitionColumn = None
    message_key: MessageKey = ()
    forward_headers: ForwardHeaders = False
    header_columns: HeaderColumns = ()
    foreach_partition: SinkFunction = None
    delivery: DeliveryChoice = None
    commit: CommitChoice = Commit.AUTO
    on_schema_change: SchemaChange = OnSchemaChange.APPLY

    @property
    def key_parts(self) -> tuple[KeyPart, ...]:
        """The key columns of the table, and what each is made from."""
        return key_parts(self.keys)


class Pipeline(Model):
    """One way from topics to a table."""

    name: Annotated[PipelineName, Unwritten()]
    source: Source = Field(description="What is read.")
    ddl: Annotated[Columns, Instead()] = Field(
        validation_alias="schema",
        description="The columns of the records, and of the table unless others are made of them."
        " Without it they are those of the table, or of the schema of Avro or Protobuf, see"
        " [formats](records.md#columns-that-the-file-does-not-name).",
        examples=["order_id BIGINT, amount DECIMAL(12,2), tags ARRAY<STRING>, at TIMESTAMP"],
    )
    fields: Fields = ()
    each: Each = None
    transform: Transform = None
    select: Select = None
    target: Target = Field(description="What is written.")
    ledger: LedgerName | None = Field(
        default=None,
        description="The first name of a pipeline that was renamed. The ledger, the offsets table"
        " and the quarantine keep it.",
        examples=["orders"],
    )
    trigger: Trigger = TEN_SECONDS
    retry: RetryTimes = Retry()
    schemas: Annotated[Mapping[int, str | None], Unwritten()] = Field(default={}, repr=False)
    """Schemas of the registry by their numbers, as far as a run knows them; None: there is none."""

    @model_validator(mode="after")
    def _fits_together(self) -> Pipeline:
        return checked(self, pipeline_faults(given(self)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the records."""
        return self.ddl

    @property
    def ledger_name(self) -> str:
        """Its name in the ledger, the offsets table and the quarantine: the first one it had."""
        return self.name if self.ledger is None else self.ledger

    @property
    def made_by(self) -> str:
        """What makes the rows of the table, as the ledger names it; empty: they are the records."""
        return self.transform or ("select" if self.select else "")

    @property
    def format(self) -> Format:
        """The registered format of its records."""
        return FORMATS.by_name[self.source.format]

    @property
    def decoder(self) -> dict[str, Any]:
        """What decodes its records, as the ledger names it; JSON values.

        Told is what is not the default: another version than 1, and settings. ``schema_file`` is
        the text of the schema, and ``not_null`` are columns. ``key`` tells the same of a form of
        message keys that is not the format's own.
        """
        known, form, source = self.format, self.key_form, self.source
        named: dict[str, Any] = {"version": known.version} if known.version > 1 else {}
        if form is not None and form != known.key and form.version > 1:
            named["key"] = {"version": form.version}
        given = {
            "lenient": sorted(source.lenient),
            "timestamps": source.timestamps.given,
            "tombstones": "" if source.tombstones in _BY_ITSELF else source.tombstones.value,
            "on_empty": "" if source.on_empty is OnEmpty.QUARANTINE else source.on_empty.value,
            "on_delete": "" if source.on_delete is OnDelete.DELETE else source.on_delete.value,
            "framing": "" if self.framing is Framing.NONE else self.framing.value,
            "schema_file": schema_text(source.format, source.schema_file),
            "message": source.message,
            "csv": source.csv.given,
            "envelope": {} if source.envelope is None else source.envelope.given,
            "each": self.each,
            "from": {each.column: [*each.texts] for each in self.fields if each.texts},
            "as": self.wires,
            "not_null": sorted(each.name for each in self.columns if each.required),
        }
        return {**named, **{name: value for name, value in given.items() if value}}

    @property
    def tombstones(self) -> Tombstones:
        """What becomes of a record without a value, where it deletes no row."""
        if self.source.envelope is not None and not self.shape.adds:
            return Tombstones.SKIP  # the event ahead of it has deleted the row
        if not self.shape.adds:
            return Tombstones.QUARANTINE
        return self.source.tombstones or Tombstones.SKIP

    @property
    def framing(self) -> Framing:
        """What stands ahead of each value."""
        source = self.source
        return framing_of(source.format, source.framing, source.schema_file)

    @property
    def reads_headers(self) -> bool:
        """Whether the headers of records are read."""
        kept = self.target.forward_headers or "headers" in self.source.metadata
        return kept or self.framing is Framing.HEADER

    @property
    def reading(self) -> tuple[Column, ...]:
        """The fields of records that give the columns, as columns themselves."""
        events = self.events
        return reading(self.written, self.fields) if events is None else events.reading

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that an event may leave as they are: it does not tell their values."""
        envelope = self.source.envelope
        if envelope is None or not envelope.unavailable or not self.shape.keyed:
            return ()
        fixed = {*self.target.keys, *self.target.order_by}
        return tuple(e.name for e in self.columns if e.type in TOLD and e.name not in fixed)

    @property
    def wires(self) -> dict[str, str]:
        """How values of columns are written that are not as the format has them, by column."""
        said = {each.column: each.wire for each in self.fields if each.wire}
        by_itself: Mapping[str, str] = {}
        if self.source.envelope is not None and self.source.format == "json":
            by_itself = self.source.envelope.wires
        apart = {each.column for each in self.fields if any(t.startswith(ROOT) for t in each.texts)}
        wires = {each.name: by_itself.get(each.kind) for each in self.columns}
        wires |= {**dict.fromkeys(apart), **said}  # only the row is written as the connector says
        return {name: each for name, each in wires.items() if each not in (None, PLAIN)}

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns as they are written in records."""
        return written(self.columns, self.wires)

    @property
    def events_delete(self) -> bool:
        """Whether an event that deletes a row leaves none."""
        return self.shape.keyed and self.source.on_delete is OnDelete.DELETE

    @property
    def events(self) -> Events | None:
        """What is read of events; None where records are none."""
        if self.source.envelope is None:
            return None
        of_keys = {*self.target.keys, *self.target.order_by}
        names = [e.name for e in self.columns if not self.events_delete or e.name in of_keys]
        keys = self.target.keys if self.shape.keyed else ()
        return events_of(self.source.envelope, self.written, self.fields, names, keys)

    @property
    def key_form(self) -> KeyForm | None:
        """The registered form of its message keys; none without ``source.key``."""
        return None if self.source.key is None else FORMATS.keys[self.source.key]

    @property
    def shape(self) -> Shape:
        """The registered shape of its table."""
        return SHAPES.by_name[self.target.mode]

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """The columns of its table, but for ``_kafka``.

        The table of a pipeline that sends has those of the records, whatever is made of them.
        """
        if self.shape.totals:
            return table_columns(self.columns, self.target.key_parts, self.target.metrics)
        return self.columns if self.shape.sends else self.row_columns

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns of the rows that are added or sent: those of the records, or what is made."""
        return self.columns if self.target.columns is None else self.target.columns

    @property
    def named_schemas(self) -> tuple[str, ...]:
        """Of what schemas are named by numbers that a registry knows: ``value``, ``key``."""
        value = self.framing is not Framing.NONE and self.format.schema_text is not None
        key = self.key_form is not None and self.key_form.framed
        return tuple(each for each, its in (("value", value), ("key", key)) if its)

    @property
    def message_key_fields(self) -> tuple[From, ...]:
        """Where the key columns stand in message keys, if not in fields of their names."""
        envelope, form = self.source.envelope, self.key_form
        if envelope is None or form is None or form.single:
            return ()
        return message_key_fields(envelope, self.target.keys, self.fields)

    @property
    def delivery(self) -> Delivery:
        """What a crash may do to its records."""
        return self.target.delivery or by_itself(self.target.mode)

    @property
    def identity(self) -> dict[str, JsonValue]:
        """The settings that may not change under a table that has rows; JSON values.

        Topics are left out: a pipeline may come to read more of them.
        """
        totals = {"metrics": sorted(map(str, self.target.metrics))}
        more = sink_identity(self.target, self.delivery) if self.shape.sends else {}
        return {
            **(totals if self.shape.totals else {}),
            "table": str(self.target.table),
            "mode": self.target.mode,
            "keys": list(self.target.keys),
            "order_by": list(self.target.order_by),
            "key": self.source.key,
            **more,
        }


def check_platform(pipeline: Pipeline, platform: Platform) -> None:
    """Raise SinkUnsupported where a platform cannot keep what a pipeline that sends promises.

    The file does not say where it will run, so ``validate`` cannot tell. ``doctor`` does, and each
    opening of the pipeline, before anything is read.
    """
    where = f"pipeline {pipeline.name}"
    found = f"the platform {platform.name}"
    if pipeline.delivery is Delivery.AT_MOST_ONCE and not platform.has(Capability.ONE_HOST):
        raise SinkUnsupported(
            "delivery: at-most-once is only possible where driver and executors are one machine",
            where=where,
            found=f"{found}, where Spark may run a task again, which sends its rows again",
            remedy="Write delivery: at-least-once",
        )
    function = pipeline.target.foreach_partition
    if function is not None and not platform.has(Capability.JVM):
        raise SinkUnsupported(
            "foreach_partition needs Spark's JVM in the driver's process",
            where=where,
            found=f"{found}, where the parts of a batch are no Kafka partitions",
            remedy="Use a cluster in dedicated mode, or send to kafka",
        )


def _pipelines(value: Mapping[str, Pipeline]) -> Mapping[str, Pipeline]:
    if not value:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is empty", fix="add at least one pipeline"))
    return {name: _of_elements(each) for name, each in value.items()}


def _of_elements(pipeline: Pipeline) -> Pipeline:
    """The pipeline with ``each`` as what that stands for."""
    if pipeline.each is None:
        return pipeline
    columns, fields, select = records(pipeline.each, pipeline.ddl, pipeline.fields)
    made = {"columns": of_table(pipeline.ddl), "explode": True}
    target = pipeline.target.model_copy(update=made)
    told = {"ddl": columns, "fields": fields, "select": select, "target": target}
    return pipeline.model_copy(update=told)


Pipelines = Annotated[Mapping[PipelineName, Pipeline], AfterValidator(_pipelines)]
