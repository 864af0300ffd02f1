"""Whatever JSON samples are: the decoder takes all of them by the pipeline that is made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermouth.formats.tasks import decoder_of
from rivermouth.operate.by_values import draft_by_values
from rivermouth.operate.drafts import Connection
from rivermouth.operate.infer import configured
from rivermouth.schemas.recognized import recognize

pytestmark = pytest.mark.unit

WORDS = st.sampled_from(
    (
        *(
            "id",
            "Id",
            "ID",
            "at",
            "at",
            "price",
            "created_at",
            "a.b",
            "Order Id",
            "_kafka",
            "_rm_x",
            "é",
        ),
        *(
            "x;y",
            "a`b",
            "",
            "order",
            "NOT",
            "${env:X}",
            "1st",
            "$",
            "\u0001",
            "'",
            '"',
            "\U0001f600",
        ),
    )
)
NAMES = WORDS | st.text(max_size=4)
SPELT = st.sampled_from(
    (
        *("0", "-0", "7", "7.0", "1e2", "0.5", "-12.50", "9223372036854775807", "1e400", "1E-400"),
        *(
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
            "9007199254740993",
        ),
        *("123456789012345678901234567890123456789", "0.1234567890123456789", "1767225600"),
        *("1767225600123", "1767225600123456", "1767225600123456789", "20000"),
    )
)
TEXTS = st.sampled_from(
    (
        *("", "x", "2026-01-31", "2026-02-30", "2026-01-31T10:00:00Z", "2026-01-31 10:00", "12.50"),
        *("2026-01-31T10:00:00.123456789+01:00", "0001-01-01T00:00:00+23:00", "true", "null", "-3"),
        *("9999-12-31T23:59:59.999999999Z", "2026-01-31T10:00:00", "QUI=", "\u0000", "__x"),
    )
) | st.text(max_size=5)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{_quoted(name)}: {value}" for name, value in members) + "}"


VALUES = st.recursive(
    st.sampled_from(("null", "true", "false")) | SPELT | TEXTS.map(_quoted),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(NAMES, inner), max_size=4).map(_object)
    ),
    max_leaves=8,
)
RECORDS = st.lists(
    st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=6).map(_object), min_size=1, max_size=12
)


def refused(values: Sequence[bytes]) -> list[tuple[bytes, str, str]]:
    """The values that the pipeline made of them does not take, with the reasons."""
    found = recognize(values)
    assert not isinstance(found, str), found
    draft = draft_by_values("orders", found, ())
    config = configured(Connection({"bootstrap.servers": "localhost:9092"}), [draft], "lake.yml")
    decoded = decoder_of(config.pipelines["orders"])(raw(values)).to_pydict()
    told = zip(values, decoded["code"], decoded["reason"], strict=True)
    return [(value, code, reason) for value, code, reason in told if code is not None]


def raw(values: Sequence[bytes]) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.repeat("orders", count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.nulls(count, pa.timestamp("us", "UTC")),
        }
    )


def reachable(record: str) -> bool:
    """Whether a column can be of one of its fields."""
    names: Any = json.loads(record, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
    return any(name and "`" not in name for name in names)


@settings(max_examples=50)
@given(RECORDS.map(lambda records: [each for each in records if reachable(each)]))
def test_every_sample_is_taken(records: list[str]) -> None:
    if records:
        assert refused([each.encode() for each in records]) == []


@settings(max_examples=100)
@given(st.lists(st.lists(TEXTS | SPELT | st.just("true"), min_size=3, max_size=3), min_size=5))
def test_every_line_is_taken(lines: list[list[str]]) -> None:
    plain = [[each for each in line if each.isprintable()] for line in lines]
    values = [";".join('"' + e.replace('"', '""') + '"' for e in line) for line in plain if line]
    if values:
        found = refused([each.encode() for each in values])
        assert [each for each in found if each[1] != "RM602"] == []
