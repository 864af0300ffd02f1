"""What a pipeline reads, as values: frozen, strict, complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from rivermouth.config.encoding import Csv, FramingChoice, Lenient, SchemaFile, Timestamps
from rivermouth.config.envelope import ENVELOPES, EnvelopeChoice
from rivermouth.config.problems import Fault, Kind
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import InPlace, Model, SparkName, Written, some_of
from rivermouth.config.start import Start
from rivermouth.config.value_types import (
    Always,
    Count,
    DataLossChoice,
    DeletionChoice,
    Duration,
    EmptyChoice,
    FormatName,
    GroupName,
    KeyFormName,
    MissingTimeChoice,
    SourceOptions,
    StartAt,
    TaskCount,
    TombstonesChoice,
    TopicsRead,
)
from rivermouth.config.values import OnDataLoss, OnDelete, OnEmpty, OnMissingTime, read_names

PLACE = ("topic", "partition", "offset", "timestamp")
"""The fields of ``_kafka`` that every row has: by them it is proved."""
METADATA = ("key", "headers")
"""Those that may be asked for, in the order in which they follow."""


def read_metadata(value: object) -> tuple[str, ...]:
    """Names of fields, each once, in their order in ``_kafka``; raises ``Refused``."""
    asked = read_names(METADATA, value, PLACE)
    return tuple(each for each in METADATA if each in asked)


def has_rows_of_records(mode: str, metadata: tuple[str, ...]) -> Iterator[Fault]:
    """The rule that a table has rows of single records, for their metadata to stand in."""
    shape, path = SHAPES.by_name[mode], ("source", "metadata")
    if metadata and shape.totals:
        message = f"{{path}} has no meaning in mode {mode}"
        fix = "a row of totals is of many records: remove it"
        yield Fault(Kind.KEYS_AND_MODE, message, path=path, fix=fix, at_key=True)
    if metadata and shape.sends:
        message = "{path} has no meaning for a target that is no table"
        fix = "a topic gets the headers by forward_headers: true; remove it"
        yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)


def _where() -> str:
    refusing = [f"`{name}`" for name, each in SHAPES.by_name.items() if each.totals]
    return f"Refused for mode {' or '.join(refusing)}, and for targets that are no table."


Metadata = Annotated[
    tuple[str, ...],
    BeforeValidator(read_metadata),
    Written(some_of(lambda: METADATA), "list of `key`, `headers`", more=_where),
    Field(
        description="What the column `_kafka` holds of a record beside topic, partition, offset and"
        " timestamp, see [tables](tables.md#message-key-and-headers).",
        examples=[["key", "headers"]],
    ),
]


KAFKA_COLUMNS: Mapping[str, str] = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
}
"""What a stage may be given of Kafka's rows, and may give on, with the types."""


HEADERS: Mapping[str, str] = {"headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>"}
"""What it is given besides where headers are asked for."""


PARTITION = PLACE[:2]
"""Those that name the partition of a record."""


def kafka_struct(metadata: Sequence[str]) -> str:
    """The type of ``_kafka``, with the fields that ``source.metadata`` asks for."""
    return f"STRUCT<{', '.join(f'{e}: {kafka_field(e)}' for e in (*PLACE, *metadata))}>"


def kafka_field(name: str) -> str:
    """The type of a field of ``_kafka``."""
    return {**KAFKA_COLUMNS, **HEADERS}[name]


class Source(Model):
    """What a pipeline reads."""

    topics: Annotated[TopicsRead, SparkName("subscribe", listed=True)] = Field(
        description="The topics to read: a list, a pattern that whole names match, or `assign`:"
        " some partitions of each.",
        examples=[["orders"], {"pattern": "orders_.*"}, {"assign": {"orders": [0, 1]}}],
    )
    format: FormatName = Field(description="How the values of records are encoded.")
    framing: FramingChoice | None = Field(
        default=None,
        description="What stands ahead of a value. `confluent`: a zero byte and the number of its"
        " schema, as serialisers with a schema registry write them. `header`: nothing, and the"
        " number stands in a header, as Apicurio's write it. `none`: nothing. By default"
        " `confluent` where records need a schema and no `schema_file` is given, else `none`.",
    )
    schema_file: SchemaFile | None = Field(
        default=None,
        description="The file with the schema of records that do not name one: `.avsc` of Avro,"
        " `.proto` or a descriptor set of Protobuf. A relative path begins at the folder of this"
        " file.",
        examples=["./order.avsc"],
    )
    message: str | None = Field(
        default=None,
        description="The full name of the message in `schema_file` that records are.",
        examples=["shop.Order"],
    )
    envelope: EnvelopeChoice | None = Field(
        default=None,
        description=ENVELOPES,
        examples=["debezium", {"op": "type", "data": "row", "delete_when": ["delete"]}],
    )
    on_delete: DeletionChoice = Field(
        default=OnDelete.DELETE,
        description="What an upsert does with an event that deletes a row. `delete`: the row goes,"
        " and its key is not remembered. `row`: the row stays with what is told of it, and `_op`"
        " says that it was deleted. See [change streams](cdc.md#rows-of-deleted-keys).",
    )
    csv: Annotated[Csv, Field(description="How lines are written, see [formats](records.md).")] = (
        Csv()
    )
    timestamps: Annotated[
        Timestamps, Field(description="How times in records are read, see [json](json.md).")
    ] = Timestamps()
    lenient: Lenient = Field(
        default=(),
        description="What records may have beyond the strict rules, see [json](json.md).",
        examples=[["number_in_text", "any_case"]],
    )
    on_empty: EmptyChoice = Field(
        default=OnEmpty.QUARANTINE,
        description="What becomes of a record that has none of the fields of `schema`, not even a"
        " null one. `quarantine`: it is bad. `null`: it is a row of nulls.",
    )
    tombstones: TombstonesChoice | None = Field(
        default=None,
        description="What an append does with a record that has no value. `skip`: it makes no row,"
        " and is counted apart. `quarantine`: it is bad. `row`: it is a row of nulls. By default"
        " `skip`. In other modes a record without a value is bad, unless `key` is given.",
    )
    start: Annotated[StartAt, SparkName("startingOffsets")] = Field(
        default=Start(),
        description="Where to start if the table has no ledger yet. Later it has no effect.",
        examples=[
            "earliest",
            "latest",
            "2026-11-01T06:00:00Z",
            {"orders": {"0": 100, "1": "latest"}},
        ],
    )
    on_missing_time: Annotated[
        MissingTimeChoice, SparkName("startingOffsetsByTimestampStrategy")
    ] = Field(
        default=OnMissingTime.ERROR,
        description="What to do if a partition has no record of the time in `start`, nor a later"
        " one. `error`: stop. `latest`: start at its end.",
    )
    key: KeyFormName | None = Field(
        default=None,
        description="How the message key holds the columns of `keys`. If it is given, a record"
        " without a value deletes the row of its key.",
    )
    metadata: Metadata = ()
    max_offsets_per_trigger: Annotated[Count, SparkName("maxOffsetsPerTrigger")] = Field(
        default=500_000, description="The most offsets in one batch."
    )
    min_offsets_per_trigger: Annotated[Count | None, SparkName("minOffsetsPerTrigger")] = Field(
        default=None,
        description="In `run --continuous` a batch waits until so many offsets are there. A run"
        " that ends does not wait. At most `max_offsets_per_trigger`.",
    )
    max_trigger_delay: Annotated[Duration, SparkName("maxTriggerDelay")] = Field(
        default=timedelta(minutes=15),
        description="The longest that a batch waits for `min_offsets_per_trigger`, since the last"
        " batch was due.",
    )
    max_rate_per_partition: Count | None = Field(
        default=None,
        description="The most offsets of each partition in a second, see [reading](reading.md).",
    )
    min_partitions: Annotated[TaskCount | None, SparkName("minPartitions")] = Field(
        default=None,
        description="The least number of tasks that read a batch: Spark splits its largest ranges.",
    )
    max_records_per_partition: Annotated[Count | None, SparkName("maxRecordsPerPartition")] = Field(
        default=None,
        description="The most offsets that one task reads: Spark splits larger ranges.",
    )
    on_data_loss: DataLossChoice = Field(
        default=OnDataLoss.HALT,
        description="What to do if Kafka has deleted records that were not read. `halt`: stop."
        " `record`: write the range into the ledger as lost, and continue after it.",
    )
    fail_on_data_loss: Always = Field(
        default=True,
        validation_alias="failOnDataLoss",
        exclude=True,
        repr=False,
        description="Spark's option. Only `true` is accepted, and it changes nothing: a loss is"
        " never silent.",
    )
    mirror_group: GroupName | None = Field(
        default=None,
        description="A consumer group into which a run also writes the position, for monitors"
        " alone. Nothing reads it back.",
        examples=["monitor-orders"],
    )
    options: Annotated[SourceOptions, InPlace("kafka.")] = Field(
        default_factory=dict,
        description="An option of the Kafka client for this source alone. Servers and secrets"
        " belong in the section `kafka`.",
    )
    """Each name starts with ``kafka.``."""

    @property
    def in_parts(self) -> bool:
        """Whether Spark may read the range of one partition in several parts."""
        return self.min_partitions is not None or self.max_records_per_partition is not None
