"""A ledger that names decoders, read whole: what is not known is said, and never judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.verify.doubles import CREATE, ZERO, MemorySource, commit, configured, message, row
from tests.unit.verify.test_unchecked import KEYED, bad, found, proven

pytestmark = pytest.mark.unit

LENIENT = {"lenient": ["number_in_text"]}
RECORDS = [message(0, b'{"id":1}'), message(1, b'{"id":"2"}'), message(2, b"{'id':3}")]
QUARANTINE = [{**bad(2, b"{'id':3}"), "commit": "p-2"}]


def proof_of(folder: Path, decoder: Mapping[str, Any], target: Mapping[str, Any]) -> Any:
    commits = [CREATE, commit(1, 0, 1), commit(2, 1, 3, decoder=decoder)]
    written = [row(1, None, 0), row(2, None, 1)]
    source = MemorySource({ZERO: RECORDS})
    return proven(configured(folder, **target), source, written, commits, QUARANTINE)


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_each_record_is_judged_by_the_decoder_that_its_entry_names(
    target: Mapping[str, Any], tmp_path: Path
) -> None:
    proof = proof_of(tmp_path, LENIENT, target)
    assert (found(proof), proof.unchecked) == ({}, ())
    other = proof_of(tmp_path, {}, target)
    assert found(other) != {}


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_a_version_that_is_not_known_is_named_with_what_to_do(
    target: Mapping[str, Any], tmp_path: Path
) -> None:
    proof = proof_of(tmp_path, {"version": 9}, target)
    [line] = [each for each in proof.problems if "decoded" in each]
    assert "entry 2 was decoded by version 9 of json" in line
    assert line.endswith("upgrade rivermouth")
    assert "the rows" in proof.unchecked
    assert not any(each.startswith("t-0@") for each in proof.problems), "no record is judged"
