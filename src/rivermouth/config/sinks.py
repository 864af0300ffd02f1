"""Targets that are no table: a Kafka topic, or a function of the user. Settings and rules.

Such a pipeline has a ledger in a table of its own, which holds no rows. Its name is not written:
``shape`` fills it in.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rivermouth.config.names import OFFSETS_TABLE
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import NAMES, Schema, Written, one_of, or_reference
from rivermouth.config.topics import Topics, read_topics
from rivermouth.config.transform import read_function
from rivermouth.config.value_types import ColumnNames, Flag
from rivermouth.config.values import read_choice

if TYPE_CHECKING:
    from rivermouth.config.pipeline import Target

SINKS = ("kafka", "foreach_partition")
"""The settings of ``target`` that stand instead of ``table``."""
SEND = "send"
"""The mode of a pipeline with such a target."""
ID_HEADER = "rm-id"
"""The header that tells a sent record from all others: ``pipeline/topic/partition/offset``."""


class Delivery(Enum):
    """How often a record gets to its target if a run is killed or fails."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    """It is sent before the commit. What was sent before a crash is sent again."""
    AT_MOST_ONCE = "at-most-once"
    """It is sent after the commit. What was not sent before a crash is never sent."""


def ledger_table(ledger: str) -> str:
    """The table that holds the ledger of a pipeline that sends."""
    return f"{OFFSETS_TABLE.schema}.ledger_{ledger}"


def by_itself(mode: str) -> Delivery:
    """The delivery of a pipeline that does not say one."""
    return Delivery.AT_LEAST_ONCE if SHAPES.by_name[mode].sends else Delivery.EXACTLY_ONCE


def sink_identity(target: Target, delivery: Delivery) -> dict[str, str | bool | list[str] | None]:
    """The settings of a sink that give its pipeline its identity: by them ``verify`` reads it.

    What came later is told only where it is given, so that earlier entries have the same identity.
    """
    later: dict[str, str | bool | list[str] | None] = {
        "topic_column": target.topic_column,
        "partition_column": target.partition_column,
        "message_key": [*target.message_key],
        "forward_headers": target.forward_headers,
        "header_columns": [*target.header_columns],
    }
    return {
        "kafka": _told(target),
        "foreach_partition": target.foreach_partition,
        "delivery": delivery.value,
        **{name: value for name, value in later.items() if value},
    }


def _told(target: Target) -> str | list[str] | None:
    """The topics in an entry: in order, or the only one alone where no column chooses."""
    if target.kafka is None:
        return None
    return target.kafka[0] if target.topic_column is None else sorted(target.kafka)


def read_sink_topics(value: object) -> tuple[str, ...]:
    """The topics from the name of one or from a list of names; raises ``Refused``."""
    if isinstance(value, (list, tuple)):
        return read_topics(value).names
    if not isinstance(value, str):
        message = "{path} must be the name of a topic or a list of names, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message))
    try:
        return read_topics([value]).names
    except Refused as refused:
        first = refused.faults[0]
        raise Refused(Fault(first.kind, first.message, fix=first.fix)) from None


_TEXT: Schema = or_reference({"type": "string"})

SinkTopics = Annotated[
    Annotated[
        tuple[str, ...],
        BeforeValidator(read_sink_topics),
        WithJsonSchema({"anyOf": [*_TEXT["anyOf"], {**NAMES, "minItems": 1}]}),
    ]
    | None,
    Field(
        description="Instead of `table`: the topic of the same cluster to which each record is"
        " sent as JSON, or a list of topics together with `topic_column`, see [sinks](sinks.md).",
        examples=["orders-clean", ["orders-paid", "orders-open"]],
    ),
    Written(word="text, or list"),
]
TopicColumn = Annotated[
    str | None,
    Field(
        description="Only with `kafka`: the column, a STRING, that says for each record to which"
        " of the topics it is sent. A record in which it is null or another text goes to"
        " quarantine.",
        examples=["to_topic"],
    ),
    Written(lambda: _TEXT, word="column"),
]
SinkFunction = Annotated[
    Annotated[str, BeforeValidator(read_function), WithJsonSchema(_TEXT)] | None,
    Field(
        description="Instead of `table`: a function of yours that gets the rows, see"
        " [sinks](sinks.md).",
        examples=["shop.sinks:store"],
    ),
    Written(word="text"),
]
PartitionColumn = Annotated[
    str | None,
    Field(
        description="Only with `kafka`: the column, an INT, SMALLINT or TINYINT, that holds the"
        " number of the partition to which a record is sent. Where it is null, the key decides. A"
        " record in which it is negative goes to quarantine.",
        examples=["to_partition"],
    ),
    Written(lambda: _TEXT, word="column"),
]
MessageKey = Annotated[
    ColumnNames,
    Field(
        description="Only with `kafka`: the columns that the key of a sent record is made of, see"
        " [sinks](sinks.md#the-key). If the list is empty, it is the key of the record that was"
        " read.",
        examples=[["order_id"]],
    ),
]
ForwardHeaders = Annotated[
    Flag,
    Field(
        description="Only with `kafka`: whether a record is sent with the headers that it was read"
        " with, see [sinks](sinks.md#headers).",
    ),
]
HeaderColumns = Annotated[
    ColumnNames,
    Field(
        description="Only with `kafka`: the columns that become headers of a sent record, each"
        " under its own name, see [sinks](sinks.md#headers).",
        examples=[["trace_id", "tenant"]],
    ),
]
DeliveryChoice = Annotated[
    Annotated[
        Delivery,
        BeforeValidator(lambda value: read_choice(Delivery, value)),
        Written(one_of(lambda: [each.value for each in Delivery])),
    ]
    | None,
    Field(
        description="What a crash may do. `exactly-once` is the default of a table, and the only"
        " value there. `kafka` and `foreach_partition` take `at-least-once`, the default there, or"
        " `at-most-once`.",
    ),
]


Names = tuple[str, ...]


def sinks_fit(mode: str, kafka: Names | None, function: str | None) -> Iterator[Fault]:
    """One target, and the mode that goes with it."""
    path: KeyPath = ("target", "foreach_partition")
    if kafka is not None and function is not None:
        message = "{path} is given together with kafka"
        fix = "a pipeline has one target: remove one of them"
        yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)
    sent = kafka is not None or function is not None
    if sent and not SHAPES.by_name[mode].sends:
        message = f"{{path}} is {{value}}, but {SINKS[kafka is None]} takes no rows of a table"
        yield Fault(Kind.SINK, message, path=("target", "mode"), fix="remove it")
    if not sent and SHAPES.by_name[mode].sends:
        message = "{path} is {value}, but there is nothing to send to"
        fix = f"write {' or '.join(SINKS)} instead of table"
        yield Fault(Kind.SINK, message, path=("target", "mode"), fix=fix)


def delivery_is_kept(
    mode: str, delivery: Delivery | None, kafka: Names | None, function: str | None
) -> Iterator[Fault]:
    """What can be promised: of a table exactly once, of a sink one of the other two."""
    sends = SHAPES.by_name[mode].sends
    path: KeyPath = ("target", "delivery")
    message = "{path} cannot be {value} for"
    if not sends and delivery not in (None, Delivery.EXACTLY_ONCE):
        fix = "it would cost the same: rows and offsets are one commit; remove it"
        yield Fault(Kind.SINK, f"{message} a table", path=path, fix=fix)
    if not sends or delivery is not Delivery.EXACTLY_ONCE:
        return
    if kafka is not None:
        fix = (
            "a transaction of Kafka has one producer, and several send a batch; write"
            " at-least-once, and let consumers drop repeats by the header rm-id"
        )
        yield Fault(Kind.SINK, f"{message} kafka", path=path, fix=fix)
    elif function is not None:
        fix = (
            "only your function can promise it; write at-least-once, and store rows and offsets"
            " in one transaction, see docs/sinks.md"
        )
        yield Fault(Kind.SINK, f"{message} foreach_partition", path=path, fix=fix)


def no_loop(kafka: Names | None, topics: Topics) -> Iterator[Fault]:
    """A pipeline may not read what it sends."""
    names = kafka or ()
    for index, name in enumerate(names):
        if topics.take(name):
            message = "{path} is {found}, which this pipeline reads"
            fix = "it would read what it sends, without end: send to another topic"
            at: KeyPath = (index,) if len(names) > 1 else ()
            yield Fault(Kind.SINK, message, name, fix=fix, path=("target", "kafka", *at))


def topics_are_chosen(kafka: Names | None, column: str | None) -> Iterator[Fault]:
    """Where there are several topics, a column says which of them."""
    if kafka is not None and len(kafka) > 1 and column is None:
        message = f"{{path}} names {len(kafka)} topics, but nothing says which of them"
        fix = "write topic_column: the column that holds the name, or send to one topic"
        yield Fault(Kind.SINK, message, path=("target", "kafka"), fix=fix)


def not_split(function: str | None, least: int | None, most: int | None) -> Iterator[Fault]:
    """A function gets the records of a Kafka partition in one call, in their order."""
    for name, value in (("min_partitions", least), ("max_records_per_partition", most)):
        if function is not None and value is not None:
            message = "{path} does not go with foreach_partition"
            fix = "one call of the function has all records of a Kafka partition: remove it"
            path: KeyPath = ("source", name)
            yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)


ONLY_TO_A_TOPIC = (
    "topic_column",
    "partition_column",
    "message_key",
    "forward_headers",
    "header_columns",
)
"""What is said of sent records."""


def only_to_a_topic(kafka: Names | None, *said: object) -> Iterator[Fault]:
    """The values of ``ONLY_TO_A_TOPIC`` have a meaning only where records are sent to a topic."""
    for name, value in zip(ONLY_TO_A_TOPIC, said, strict=True):
        if value and kafka is None:
            message = "{path} has no meaning without kafka"
            fix = "it is said of records that are sent to a topic: remove it"
            path: KeyPath = ("target", name)
            yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)


def id_is_ours(names: Names) -> Iterator[Fault]:
    """The header by which consumers tell records apart is made by us alone."""
    for index, name in enumerate(names):
        if name == ID_HEADER:
            message = "{path} is {value}, which is the header with the id of a record"
            fix = "give the column another name, or leave it out"
            yield Fault(Kind.SINK, message, path=("target", "header_columns", index), fix=fix)
