"""What gives a pipeline that sends its identity: entries that are there keep theirs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rivermouth.config import Config

pytestmark = pytest.mark.unit

Loads = Callable[..., Config]
FIRST = {"kafka": "u", "foreach_partition": None, "delivery": "at-least-once"}
OTHER = {"table", "mode", "keys", "order_by", "key"}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("kafka: u", FIRST),
        ("kafka: u, message_key: []", FIRST),
        ("kafka: [u]", FIRST),
        (
            "kafka: [v, u], topic_column: to",
            {**FIRST, "kafka": ["u", "v"], "topic_column": "to"},
        ),
        ("kafka: u, topic_column: to", {**FIRST, "kafka": ["u"], "topic_column": "to"}),
        ("kafka: u, partition_column: part", {**FIRST, "partition_column": "part"}),
        ("kafka: u, message_key: [id, at]", {**FIRST, "message_key": ["id", "at"]}),
        ("kafka: u, forward_headers: false, header_columns: []", FIRST),
        ("kafka: u, forward_headers: true", {**FIRST, "forward_headers": True}),
        ("kafka: u, header_columns: [id, at]", {**FIRST, "header_columns": ["id", "at"]}),
    ],
)
def test_a_setting_that_came_later_is_told_only_where_it_is_given(
    target: str, expected: dict[str, object], lake: str, loads: Loads
) -> None:
    text = lake.replace("table: s.t", target).replace(
        "at TIMESTAMP", "at TIMESTAMP, to STRING, part INT"
    )
    identity = loads(text).pipelines["p"].identity
    found = {name: value for name, value in identity.items() if name not in OTHER}
    assert json.dumps(found) == json.dumps(expected)
