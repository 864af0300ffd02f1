"""A record without a value in a column that is NOT NULL is bad, for the writer and for verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Config, load
from rivermouth.formats.tasks import decoder_of
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.proofs.decoding import EntryReaders
from tests.unit.verification.doubles import MemorySource, entry, span, subject

pytestmark = pytest.mark.unit

FILE = """\
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: ./lake
pipelines:
  p:
    source: {topics: [t], format: json, on_empty: null}
    schema: id BIGINT NOT NULL, n STRING, c STRING NOT NULL
    target: {table: s.t}
"""
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.string()), ("c", pa.string())])
CASES: list[tuple[bytes | None, str | None, str | None]] = [
    (b'{"id":1,"c":"x"}', None, None),
    (b'{"id":1,"n":"y","c":null}', "RM614", "c is null"),
    (b'{"c":"x"}', "RM614", "id is null"),
    (b"{}", "RM614", "id is null"),
    (b'{"id":"x"}', "RM603", None),
    (b"", "RM602", None),
    (None, "skipped", None),
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "rivermouth.yml"
    file.write_text(FILE, encoding="utf-8")
    return load(file)


def batch(values: list[bytes | None]) -> pa.RecordBatch:
    """Rows of Kafka."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["t"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )


def test_it_goes_to_quarantine_with_the_name_of_the_column(config: Config) -> None:
    decode = decoder_of(config.pipelines["p"])
    found = decode(batch([value for value, _, _ in CASES]))
    assert found.column("code").to_pylist() == [code for _, code, _ in CASES]
    for reason, (_, code, why) in zip(found.column("reason").to_pylist(), CASES, strict=True):
        assert reason == why or code == "RM603"


def test_verify_judges_by_the_rule_that_the_entry_had(config: Config) -> None:
    decoder: dict[str, Any] = config.pipelines["p"].decoder
    assert decoder == {"on_empty": "null", "not_null": ["c", "id"]}
    with_rule, without = entry(1, span(0, 4), decoder=decoder), entry(2, span(4, 8))
    readers = EntryReaders(
        subject(config, MemorySource(), with_rule, without), SCHEMA, SCHEMA.names
    )
    assert readers.of(0)(b'{"id":1,"c":"x"}') == (1, None, "x")
    for value in (b'{"id":1,"n":"y","c":null}', b'{"c":"x"}', b"{}"):
        with pytest.raises(Undecodable):
            readers.of(0)(value)
    assert readers.of(1)(b'{"c":"x"}') == (None, None, "x")
