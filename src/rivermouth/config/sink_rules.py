"""Rules of targets that are no table: which settings go with a topic, and which with a function."""

from __future__ import annotations

from collections.abc import Iterator

from rivermouth.config.problems import Fault, Kind, Path
from rivermouth.config.sending import ID_HEADER, SINKS, Delivery
from rivermouth.config.topics import Topics
from rivermouth.registry.shapes import SHAPES

Names = tuple[str, ...]


def sinks_fit(mode: str, kafka: Names | None, function: str | None) -> Iterator[Fault]:
    """One target, and the mode that goes with it."""
    path: Path = ("target", "foreach_partition")
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
    path: Path = ("target", "delivery")
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
            at: Path = (index,) if len(names) > 1 else ()
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
            path: Path = ("source", name)
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
            path: Path = ("target", name)
            yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)


def id_is_ours(names: Names) -> Iterator[Fault]:
    """The header by which consumers tell records apart is made by us alone."""
    for index, name in enumerate(names):
        if name == ID_HEADER:
            message = "{path} is {value}, which is the header with the id of a record"
            fix = "give the column another name, or leave it out"
            yield Fault(Kind.SINK, message, path=("target", "header_columns", index), fix=fix)
