"""An entry is read from its description; what is not one raises what a reader catches."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.protocol.entry_json import to_json
from rivermouth.verification.ledger.entry import LedgerRange, parse_entry, shown
from tests.builders import entry_after, span

pytestmark = pytest.mark.unit


def written(**changes: Any) -> dict[str, Any]:
    """An entry as the writer writes it."""
    facts = json.loads(to_json(entry_after(None, span(3, 5), span(0, 2, partition=1))))
    return {**facts, **changes}


TOLD = written()["topics"]["t"]


def test_an_entry_of_the_writer_is_read() -> None:
    entry = parse_entry(7, written(lost=[["t", 0, 1, 3]], accepts={"kind": "reset"}))
    assert (entry.version, entry.sequence) == (7, 1)
    assert entry.ranges == (LedgerRange(("t", 0), 3, 5), LedgerRange(("t", 1), 0, 2))
    assert entry.position == {("t", 0): 5, ("t", 1): 2}
    assert [str(each) for each in entry.lost] == ["t-0[1,3)"]
    assert entry.accepts == "reset"
    assert shown(entry.ranges[1].partition) == "t-1"


def test_what_does_not_apply_is_empty() -> None:
    entry = parse_entry(0, written())
    assert (entry.lost, entry.accepts, entry.ends, entry.decoder) == ((), None, {}, {})
    assert entry.metadata == ()


def test_decoder_and_metadata_are_read_as_the_writer_names_them() -> None:
    decoder, metadata = {"lenient": ["any_case"], "timestamps": {"unit": "ms"}}, ("key", "headers")
    newest = replace(entry_after(None, span(3, 5)), decoder=decoder, metadata=metadata)
    entry = parse_entry(0, json.loads(to_json(newest)))
    assert (entry.decoder, entry.metadata) == (decoder, metadata)


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": "x"},
        {"topics": None},
        {"topics": {"t": {**TOLD, "position": None}}},
        {"topics": {"t": {**TOLD, "position": [5]}}},
        {"topics": {"t": {**TOLD, "ranges": {"partitions": [2, 2], "spans": 1}}}},
        {"topics": {"t": {**TOLD, "ranges": {"partitions": [0, 0], "spans": ["x"]}}}},
        {"columns": None},
        {"columns": [["id"]]},
        {"config": None},
        {"accepts": {}},
        {"decoder": 2},
    ],
)
def test_what_is_no_entry_raises_an_expected_error(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        parse_entry(0, written(**changes))


@pytest.mark.parametrize("name", ["columns", "config", "topics", "cluster", "commit", "sequence"])
def test_what_every_entry_tells_must_be_there(name: str) -> None:
    facts = written()
    del facts[name]
    with pytest.raises(KeyError):
        parse_entry(0, facts)
