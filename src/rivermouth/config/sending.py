"""Targets that are no table: a Kafka topic, or a function of the user; and how records get there.

Such a pipeline has a ledger in a table of its own, which holds no rows. Its name is not written:
``shape`` fills it in.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Protocol

from rivermouth.config.names import OFFSETS_TABLE
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.topics import read_topics
from rivermouth.registry.shapes import SHAPES

SINKS = ("kafka", "foreach_partition")
"""The settings of ``target`` that stand instead of ``table``."""
SEND = "send"
"""The mode of a pipeline with such a target."""
ID_HEADER = "rm-id"
"""The header that tells a sent record from all others: ``pipeline/topic/partition/offset``."""
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


class SinkTarget(Protocol):
    """The settings of ``target`` that say what is sent, and where to."""

    @property
    def kafka(self) -> tuple[str, ...] | None: ...

    @property
    def topic_column(self) -> str | None: ...

    @property
    def foreach_partition(self) -> str | None: ...

    @property
    def partition_column(self) -> str | None: ...

    @property
    def message_key(self) -> tuple[str, ...]: ...

    @property
    def forward_headers(self) -> bool: ...

    @property
    def header_columns(self) -> tuple[str, ...]: ...


def sink_identity(
    target: SinkTarget, delivery: Delivery
) -> dict[str, str | bool | list[str] | None]:
    """The settings of a sink that give its pipeline its identity: by them ``verify`` reads it.

    What came later is told only where it is given, so that earlier entries have the same identity.
    """
    told: dict[str, str | bool | list[str] | None] = {
        "kafka": _told(target),
        "foreach_partition": target.foreach_partition,
        "delivery": delivery.value,
    }
    if target.topic_column is not None:
        told["topic_column"] = target.topic_column
    if target.partition_column is not None:
        told["partition_column"] = target.partition_column
    if target.message_key:
        told["message_key"] = [*target.message_key]
    if target.forward_headers:
        told["forward_headers"] = True
    if target.header_columns:
        told["header_columns"] = [*target.header_columns]
    return told


def _told(target: SinkTarget) -> str | list[str] | None:
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


def read_function(value: object) -> str:
    """``package.module:function``; raises ``Refused``. It is not imported here."""
    if isinstance(value, str) and re.fullmatch(_FUNCTION, value, re.ASCII):
        return value
    kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    message = "{path} must be package.module:function, not {value}"
    raise Refused(Fault(kind, message))
