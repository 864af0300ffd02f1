"""The settings of a topic that say when Kafka deletes its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rivermouth.errors import KafkaRefused
from rivermouth.protocol.topic_retention import Retention


def retention_of(settings: Mapping[str, Any], where: str, topic: str) -> Retention:
    """From an answer to ``describe_configs``. Raises KafkaRefused where a setting is not told."""
    told: dict[str, str] = {}
    for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
        value = getattr(settings.get(name), "value", None)
        if value is None:
            raise KafkaRefused(
                f"the broker does not tell {name}",
                where=f"{where} {topic}",
                remedy="Look it up with the tools of your Kafka service",
            )
        told[name] = str(value)
    age_ms, size = int(told["retention.ms"]), int(told["retention.bytes"])
    return Retention(
        policy=",".join(each.strip() for each in told["cleanup.policy"].split(",")),
        age_ms=age_ms if age_ms >= 0 else None,
        size=size if size >= 0 else None,
    )
