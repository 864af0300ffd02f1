"""A topic with every kind of bad record: the pipeline goes on, and each record is accounted for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.lake import Lake
from tests.records.conftest import Registering, avro, framed
from tests.records.poison import (
    AVRO_SCHEMAS,
    COLUMNS,
    ORDER,
    PROTO,
    Poison,
    of_avro,
    of_csv,
    of_json,
    of_protobuf,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

FATES = Path(__file__).with_name("poison.txt")
PAGE = Path(__file__).parents[2] / "docs" / "records.md"
GOOD: Mapping[str, Any] = {
    "id": 1,
    "city": "Rome",
    "amount": Decimal(1),
    "at": 0,
    "tags": ["a"],
    "state": "PAID",
    "note": None,
}


def fates() -> dict[tuple[str, str], str]:
    """The code and the reason of each bad record, by its format and what is wrong with it."""
    lines = (each.split(" | ") for each in FATES.read_text(encoding="utf-8").splitlines())
    return {(kind, name): f"{code} {reason}".strip() for kind, name, code, reason in lines}


def records(kind: str, registering: Registering) -> tuple[bytes, Poison]:
    """A good record, and the bad ones."""
    if kind == "avro":
        numbers = {
            name: registering.avro(f"poison-{n}", schema)
            for n, (name, schema) in enumerate(AVRO_SCHEMAS.items())
        }
        return framed(numbers["order"], avro(ORDER)(GOOD)), of_avro(numbers)
    if kind == "protobuf":
        number = registering.protobuf("poison-protobuf", PROTO)
        return framed(number, b"\2\2\x08\1\x12\4Rome"), of_protobuf(number)
    if kind == "json":
        return b'{"id": 1, "city": "Rome"}', of_json()
    return b"1,Rome,,,", of_csv()


@pytest.mark.parametrize("kind", COLUMNS)
def test_each_bad_record_is_in_quarantine_with_its_reason_and_all_others_land(
    kind: str, lake: Lake, registering: Registering, rivermouth_spark: SparkSession
) -> None:
    good, bad = records(kind, registering)
    topic = f"poison-{kind}"
    lake.topic(topic)
    source, table = {"topics": [topic], "format": kind}, f"bronze.poison_{kind}"
    lake.configure(p={"source": source, "schema": COLUMNS[kind], "target": {"table": table}})
    values = [value for each in bad.values() for value in (each, good)]
    lake.produce(topic, [(None, value, 0) for value in values])

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].error is None
    assert [(each["id"], each["city"]) for each in lake.rows(table)] == [(1, "Rome")] * len(bad)
    found = sorted(lake.rows(f"{table}_quarantine"), key=lambda each: each["offset"])
    assert [each["value"] for each in found] == [*bad.values()]
    told = {
        (kind, name): re.sub(
            r"^(RM61\d) schema \d+", r"\1 schema N", f"{each['code']} {each['reason'] or ''}"
        ).strip()
        for name, each in zip(bad, found, strict=True)
    }
    assert told == {of: fate for of, fate in fates().items() if of[0] == kind}
    assert len(told) >= 30
    proved = lake.command("verify")
    assert proved.returncode == 0, proved.stdout + proved.stderr


def test_the_page_lists_them_all() -> None:
    by_code: dict[tuple[str, str], list[str]] = {}
    for (kind, name), fate in fates().items():
        by_code.setdefault((kind, fate[:5]), []).append(name)
    text = PAGE.read_text(encoding="utf-8")
    lines = [
        f"| `{kind}` | `{code}` | {'; '.join(names)} |" for (kind, code), names in by_code.items()
    ]
    assert [each for each in lines if each not in text] == []
