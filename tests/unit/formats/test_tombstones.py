"""What an append makes of a record without a value, for the writer and for verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Config, load
from rivermouth.formats.tasks import decoder_of
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.proofs.decoding import EntryReaders, decoded
from rivermouth.write.files.counting import Counted, bad, good
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
    schema: id BIGINT%s
    target: {table: s.t}
"""
SCHEMA = pa.schema([("id", pa.int64())])
VALUES = [b'{"id":1}', None, b"", b'{"id":2}']


def loaded(folder: Path, setting: str, required: str = "") -> Config:
    file = folder / "rivermouth.yml"
    file.write_text(FILE % (setting, required), encoding="utf-8")
    return load(file)


CASES: list[tuple[str, str, str | None, int]] = [
    ("", "", "skipped", 2),
    (", tombstones: skip", "", "skipped", 2),
    (", tombstones: quarantine", "", "RM601", 2),
    (", tombstones: row", "", None, 3),
    (", tombstones: row", " NOT NULL", "RM614", 2),
]


@pytest.mark.parametrize(("setting", "required", "code", "rows"), CASES)
def test_each_choice_gives_the_record_its_code(
    tmp_path: Path, setting: str, required: str, code: str | None, rows: int
) -> None:
    decode = decoder_of(loaded(tmp_path, setting, required).pipelines["p"])

    made = decode(batch(VALUES))

    assert made.column("code").to_pylist() == [None, code, "RM602", None]
    kept = good(made).column("row").to_pylist()
    assert kept == [{"id": 1}, *([{"id": None}] if rows == 3 else []), {"id": 2}]
    assert bad(made).num_rows == 4 - rows - (code == "skipped")


def test_skipped_records_are_counted_apart(tmp_path: Path) -> None:
    made = decoder_of(loaded(tmp_path, "").pipelines["p"])(batch(VALUES))
    counts = Counted()
    counts.add(made.column("_kafka"), made.column("code"))

    told = Counted.from_json(counts.to_json())

    assert told == counts
    assert (told.good["t", 0], told.bad["t", 0], told.skipped["t", 0]) == (2, 1, 1)


TOLD: list[tuple[str, dict[str, Any], tuple[None, ...] | None]] = [
    ("", {}, (None,)),
    (", tombstones: skip", {}, (None,)),
    (", tombstones: quarantine", {"tombstones": "quarantine"}, None),
    (", tombstones: row", {"tombstones": "row"}, (None,)),
]


@pytest.mark.parametrize(("setting", "told", "row"), TOLD)
def test_verify_judges_by_the_choice_that_the_entry_had(
    tmp_path: Path, setting: str, told: dict[str, Any], row: tuple[None, ...] | None
) -> None:
    config = loaded(tmp_path, setting)
    assert config.pipelines["p"].decoder == told
    asked = subject(config, MemorySource(), entry(1, span(0, 4), decoder=told))
    reader = EntryReaders(asked, SCHEMA, ["id"]).of(0)
    if row is None:
        with pytest.raises(Undecodable, match="null"):
            decoded(reader, None)
    else:
        assert decoded(reader, None) == row
    assert decoded(reader, b'{"id":1}') == (1,)
    assert asked.skips.tolist() == [told == {}]
