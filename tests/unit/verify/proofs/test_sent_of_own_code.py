"""What own code made and a topic holds: ids are proved, and how many may have been left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verify.ledger.entry import LedgerEntry, left_out
from rivermouth.verify.result import Kind, Unchecked
from tests.unit.verify.doubles import entry, found, message, problems, span
from tests.unit.verify.proofs.test_sent import (
    FUNCTION,
    LEAST,
    MOST,
    copies,
    left,
    records,
    sent,
    source,
    verified,
)

pytestmark = pytest.mark.unit


def made(out: int, until: int = 6, config: Mapping[str, Any] = LEAST) -> LedgerEntry:
    """An entry of so many records, of which own code left some out."""
    return entry(1, span(0, until), config=config, transform="shop:rows", left_out=out)


def test_values_are_not_compared_and_no_more_lack_than_were_left_out(tmp_path: Path) -> None:
    kafka = source(records(*range(6)), [*copies(0, 1, 3, 3), sent(4, 4, b"[1]")])
    right = verified(tmp_path, kafka, made(2))
    assert found(right) == {}
    assert right.findings.repeated == 1
    assert left(right) == {Unchecked.MADE: 4, Unchecked.LEFT_OUT: 2}
    lost = verified(tmp_path, kafka, made(1))
    assert found(lost) == {Kind.MISSING: 1}
    assert "entry 1: 2 records without a row, but 1 left out" in problems(lost)[0]
    all_due = verified(tmp_path, kafka, made(0))
    assert problems(all_due) == ("t-0@2: not in the sink", "t-0@5: not in the sink")


def test_at_most_once_nothing_may_be_there_twice_and_anything_may_lack(tmp_path: Path) -> None:
    kafka = source(records(*range(6)), copies(0, 1, 3, 3))
    asked = verified(tmp_path, kafka, made(2, config=MOST))
    assert found(asked) == {Kind.DUPLICATED: 1}
    assert left(asked) == {Unchecked.MADE: 3, Unchecked.NOT_SENT: 3}


def test_a_record_that_cannot_be_decoded_was_not_to_be_sent(tmp_path: Path) -> None:
    kafka = source([*records(0, 1), message(2, b"oops")], copies(0, 1, 2))
    asked = verified(tmp_path, kafka, made(0, until=3))
    assert found(asked) == {Kind.DIFFERENT: 1}
    assert "not in quarantine, but verify cannot decode it" in problems(asked)[0]


def test_own_code_names_the_topic_so_any_listed_one_will_do(tmp_path: Path) -> None:
    config = {**LEAST, "kafka": ["b", "out"], "topic_column": "to"}
    kafka = source(records(*range(4)), copies(0, 2), copies(1, topic="b"))
    assert found(verified(tmp_path, kafka, made(1, until=4, config=config))) == {}
    lost = verified(tmp_path, kafka, made(0, until=4, config=config))
    assert problems(lost) == ("t-0@3: not in the sink",)


def test_records_of_entries_without_own_code_are_compared_as_ever(tmp_path: Path) -> None:
    kafka = source(records(*range(8)), [*copies(0, 1, 2, 3, 4, 5, 6), sent(7, 7, b"[1]")])
    plain = entry(2, span(6, 8), config=LEAST)
    asked = verified(tmp_path, kafka, made(0), plain)
    assert problems(asked) == ("t-0@7: not readable in the sink",)
    assert left(asked) == {Unchecked.MADE: 6}


def test_what_a_function_got_of_own_code_only_the_function_knows(tmp_path: Path) -> None:
    asked = verified(tmp_path, source(records(*range(6))), made(2, config=FUNCTION))
    assert left(asked) == {Unchecked.SINK: 6}


@pytest.mark.parametrize(
    ("told", "expected"),
    [({"left_out": 3}, 3), ({}, 0), ({"counted": False, "left_out": 1}, 1)],
)
def test_the_entry_of_a_pipeline_that_sends_tells_the_number_itself(
    told: dict[str, Any], expected: int
) -> None:
    facts = {"transform": "a:b", "topics": {}, "config": dict(MOST), **told}
    assert left_out(facts, {"numOutputRows": "0"}) == expected
