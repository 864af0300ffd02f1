"""Targets that are no table: a Kafka topic, or a function of the user; and how records get there.

Such a pipeline has a ledger in a table of its own, which holds no rows. Its name is not written:
``shape`` fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from rivermouth.config.names import OFFSETS_TABLE
from rivermouth.config.problems import Fault, Kind, Path, Refused
from rivermouth.config.topics import Topics, read_topics
from rivermouth.registry.shapes import SHAPES

SINKS = ("kafka", "foreach_partition")
"""The settings of ``target`` that stand instead of ``table``."""
SEND = "send"
"""The mode of a pipeline with such a target."""
_FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"


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


def sink_identity(target: object, delivery: Delivery) -> dict[str, str | None]:
    """The settings of a sink that give its pipeline its identity: by them ``verify`` reads it."""
    return {**{name: getattr(target, name) for name in SINKS}, "delivery": delivery.value}


def read_topic(value: object) -> str:
    """The name of one topic; raises ``Refused``."""
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be the name of a topic, not {value}"))
    try:
        return read_topics([value]).names[0]
    except Refused as refused:
        first = refused.faults[0]
        raise Refused(Fault(first.kind, first.message, fix=first.fix)) from None


def read_function(value: object) -> str:
    """``package.module:function``; raises ``Refused``. It is not imported here."""
    if isinstance(value, str) and re.fullmatch(_FUNCTION, value, re.ASCII):
        return value
    kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    message = "{path} must be package.module:function, not {value}"
    raise Refused(Fault(kind, message))


def sinks_fit(mode: str, kafka: str | None, function: str | None) -> Iterator[Fault]:
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
    mode: str, delivery: Delivery | None, kafka: str | None, function: str | None
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


def no_loop(kafka: str | None, topics: Topics) -> Iterator[Fault]:
    """A pipeline may not read what it sends."""
    if kafka is not None and topics.take(kafka):
        message = "{path} is {value}, which this pipeline reads"
        fix = "it would read what it sends, without end: send to another topic"
        yield Fault(Kind.SINK, message, path=("target", "kafka"), fix=fix)


def not_split(function: str | None, least: int | None, most: int | None) -> Iterator[Fault]:
    """A function gets the records of a Kafka partition in one call, in their order."""
    for name, value in (("min_partitions", least), ("max_records_per_partition", most)):
        if function is not None and value is not None:
            message = "{path} does not go with foreach_partition"
            fix = "one call of the function has all records of a Kafka partition: remove it"
            path: Path = ("source", name)
            yield Fault(Kind.SINK, message, path=path, fix=fix, at_key=True)
