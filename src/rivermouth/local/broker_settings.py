"""The settings of the local broker: one node, one copy, a fast start, a short log."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LOGGING", "SETTINGS", "properties_text"]

LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": "3000",  # a killed broker may return only after this time
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "16777216",  # the default takes a quarter of the heap
}


def properties_text(settings: Mapping[str, str]) -> str:
    """The text of a file of Java properties, which Java reads as ISO 8859-1."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(value: str) -> str:
    units = memoryview(value.encode("utf-16")).cast("H")[1:]  # the first one is the byte order
    return "".join(
        chr(unit) if unit < 128 and unit != ord("\\") else f"\\u{unit:04x}" for unit in units
    )
