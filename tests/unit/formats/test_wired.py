"""Values that are written in another way than the format has it, for the writer and for verify."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, load
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.formats.tasks import decoder_of
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.proofs.decoding import EntryReaders
from rivermouth.verification.tables.ports import canonical
from tests.unit.formats.test_required import batch
from tests.unit.verification.doubles import MemorySource, entry, span, subject

pytestmark = pytest.mark.unit

FILE = """\
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: ./lake
pipelines:
  p:
    source: {topics: [t], format: json%s}
    schema: id BIGINT, v %s
    columns: {v: {%s}}
    target: {table: s.t}
"""
BAD = "bad"
LONG = b64encode(int("1234567890" * 3 + "12345678").to_bytes(16, "big")).decode()
DAY = 18_295
US = 1_580_702_706_123_456
CASES: list[tuple[str, str, Any, Any]] = [
    ("days", "DATE", DAY, DAY),
    ("days", "DATE", -719_162, -719_162),
    ("days", "DATE", -719_163, BAD),
    ("days", "DATE", 2_932_896, 2_932_896),
    ("days", "DATE", 2_932_897, BAD),
    ("days", "DATE", "2020-02-03", BAD),
    ("days", "DATE", None, None),
    ("us", "TIMESTAMP_NTZ", US, US),
    ("us", "TIMESTAMP", US, US),
    ("ms", "TIMESTAMP_NTZ", US // 1000, US // 1000 * 1000),
    ("s", "TIMESTAMP_NTZ", 253_402_300_799, 253_402_300_799_000_000),
    ("s", "TIMESTAMP_NTZ", 253_402_300_800, BAD),
    ("s", "TIMESTAMP_NTZ", -62_135_596_801, BAD),
    ("s", "TIMESTAMP_NTZ", (1 << 63) - 1, BAD),
    ("ns", "TIMESTAMP_NTZ", US * 1000, US),
    ("ns", "TIMESTAMP_NTZ", US * 1000 + 1, BAD),
    ("ns", "TIMESTAMP_NTZ", -1, BAD),
    ("ns", "TIMESTAMP_NTZ", -(1 << 63), BAD),
    ("unscaled", "DECIMAL(12,2)", "+y4=", "-12.34"),
    ("unscaled", "DECIMAL(12,2)", "AA==", "0.00"),
    ("unscaled", "DECIMAL(3,1)", "A+c=", "99.9"),
    ("unscaled", "DECIMAL(3,1)", "A+g=", BAD),
    ("unscaled", "DECIMAL(3,1)", "", BAD),
    ("unscaled", "DECIMAL(38,0)", "AAAAAAAAAAAAAAAAAAAAAAAAAAE=", "1"),
    ("unscaled", "DECIMAL(12,2)", "?", BAD),
    ("unscaled", "DECIMAL(38,2)", LONG, f"{'1234567890' * 3 + '123456'}.78"),
    ("zoned", "DATE", "2020-02-03Z", DAY),
    ("zoned", "DATE", "2020-02-03", BAD),
    ("zoned", "DATE", "2020-02-30Z", BAD),
    ("zoned", "TIMESTAMP_NTZ", "2020-02-03T04:05:06.123456Z", US),
    ("zoned", "TIMESTAMP_NTZ", "Z", BAD),
]


def loaded(folder: Path, kind: str, wire: str, more: str = "") -> Config:
    file = folder / "rivermouth.yml"
    file.write_text(FILE % (more, kind, wire), encoding="utf-8")
    return load(file)


@pytest.mark.parametrize(("wire", "kind", "value", "expected"), CASES)
def test_the_writer_and_verify_make_the_same_of_a_value(
    tmp_path: Path, wire: str, kind: str, value: Any, expected: Any
) -> None:
    config = loaded(tmp_path, kind, f"as: {wire}")
    pipeline = config.pipelines["p"]
    assert pipeline.decoder == {"as": {"v": wire}}
    document = json.dumps({"id": 1, "v": value}).encode()
    good = b'{"id":2,"v":null}'

    made = decoder_of(pipeline)(batch([document, good]))

    assert made.column("code").to_pylist() == ["RM603" if expected is BAD else None, None]
    schema = schema_of(pipeline.columns)
    its = entry(1, span(0, 2), decoder=pipeline.decoder, columns=("id", "v"))
    read = EntryReaders(subject(config, MemorySource(), its), schema, ["id", "v"]).of(0)
    if expected is BAD:
        with pytest.raises(Undecodable):
            read(document)
        return
    rows = canonical(made).to_pylist()
    assert read(document) == (1, rows[0]["row"]["v"])
    shown = str(rows[0]["row"]["v"]) if isinstance(expected, str) else rows[0]["row"]["v"]
    assert shown == expected


def test_what_is_less_than_a_microsecond_is_cut_where_that_is_asked_for(tmp_path: Path) -> None:
    more = ", timestamps: {fraction: cut}"
    config = loaded(tmp_path, "TIMESTAMP_NTZ", "as: ns", more)
    pipeline = config.pipelines["p"]
    made = decoder_of(pipeline)(batch([b'{"v":-1}']))
    assert canonical(made).to_pylist()[0]["row"]["v"] == -1
    its = entry(1, span(0, 2), decoder=pipeline.decoder, columns=("id", "v"))
    readers = EntryReaders(
        subject(config, MemorySource(), its), schema_of(pipeline.columns), ["id", "v"]
    )
    assert readers.of(0)(b'{"v":-1}') == (None, -1)


MODES = [
    ("debezium", {"d": "days", "n": "unscaled"}),
    ("{debezium: {}}", {"d": "days", "n": "unscaled"}),
    ("{debezium: {decimal.handling.mode: string}}", {"d": "days"}),
    (
        "{debezium: {decimal.handling.mode: double, time.precision.mode: connect}}",
        {"d": "days", "at": "ms"},
    ),
    (
        "{debezium: {time.precision.mode: isostring}}",
        {"d": "zoned", "at": "zoned", "n": "unscaled"},
    ),
    ("maxwell", {}),
]


@pytest.mark.parametrize(("envelope", "wires"), MODES)
def test_the_options_of_a_connector_say_how_values_are_written(
    tmp_path: Path, envelope: str, wires: dict[str, str]
) -> None:
    file = tmp_path / "rivermouth.yml"
    text = FILE % (
        f", envelope: {envelope}",
        "STRING, d DATE, at TIMESTAMP_NTZ, n DECIMAL(9,2)",
        "",
    )
    file.write_text(text.replace("    columns: {v: {}}\n", ""), encoding="utf-8")
    assert load(file).pipelines["p"].wires == wires
