"""What the settings of a topic say of its retention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from rivermouth.errors import KafkaRefused
from rivermouth.kafka.client import retention_of
from rivermouth.protocol.kafka_facts import Retention

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Setting:
    value: str | None


def settings(policy: str, age: str, size: str | None) -> Mapping[str, Setting]:
    names = ("cleanup.policy", "retention.ms", "retention.bytes")
    return {name: Setting(text) for name, text in zip(names, (policy, age, size), strict=True)}


@pytest.mark.parametrize(
    ("told", "retention"),
    [
        (settings("delete", "604800000", "-1"), Retention("delete", 604_800_000, None)),
        (settings("compact, delete", "-1", "5"), Retention("compact,delete", None, 5)),
        (settings("compact", "9223372036854775807", "0"), Retention("compact", 2**63 - 1, 0)),
    ],
)
def test_minus_one_is_no_limit(told: Mapping[str, Setting], retention: Retention) -> None:
    assert retention_of(told, "k:1", "t") == retention


@pytest.mark.parametrize("told", [settings("delete", "1", None), {}])
def test_a_setting_that_is_not_told_is_named(told: Mapping[str, Setting]) -> None:
    with pytest.raises(KafkaRefused, match=r"RM303 k:1 t: the broker does not tell [a-z.]+\."):
        retention_of(told, "k:1", "t")
