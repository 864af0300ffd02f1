"""An entry is read from its description; what is not one raises what a reader catches."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.protocol.entry_json import to_json
from rivermouth.verify.ledger.entry import LedgerRange, parse_entry, shown
from tests.builders import entry_after, span
from tests.faults.checker.first_format import first_format

pytestmark = pytest.mark.unit


def second(**changes: Any) -> dict[str, Any]:
    """An entry as the writer writes it."""
    written = json.loads(to_json(entry_after(None, span(3, 5), span(0, 2, partition=1))))
    return {**written, **changes}


def facts(**changes: Any) -> dict[str, Any]:
    """The same as earlier versions wrote it."""
    return {**first_format(second()), **changes}


@pytest.mark.parametrize("written", [facts, second])
def test_an_entry_of_the_writer_is_read(written: Callable[..., dict[str, Any]]) -> None:
    entry = parse_entry(7, written(lost=[["t", 0, 1, 3]], accepts={"kind": "reset"}))
    assert (entry.version, entry.sequence) == (7, 1)
    assert entry.ranges == (LedgerRange(("t", 0), 3, 5), LedgerRange(("t", 1), 0, 2))
    assert entry.position == {("t", 0): 5, ("t", 1): 2}
    assert [str(each) for each in entry.lost] == ["t-0[1,3)"]
    assert entry.accepts == "reset"
    assert shown(entry.ranges[1].partition) == "t-1"


def test_what_old_entries_do_not_have_is_empty() -> None:
    old = facts()
    old.pop("ends", None)
    entry = parse_entry(0, old)
    assert (entry.lost, entry.accepts, entry.ends, entry.decoder) == ((), None, {}, {})
    assert entry.metadata == ()


def test_the_decoder_is_read_as_the_writer_names_it() -> None:
    told = {"version": 2, "lenient": ["any_case"], "timestamps": {"unit": "ms"}}
    newest = replace(entry_after(None, span(3, 5)), decoder=told)
    assert parse_entry(0, json.loads(to_json(newest))).decoder == told


def test_metadata_are_read_as_the_writer_names_them() -> None:
    newest = replace(entry_after(None, span(3, 5)), metadata=("key", "headers"))
    assert parse_entry(0, json.loads(to_json(newest))).metadata == ("key", "headers")


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": "x"},
        {"ranges": [["t", 0, 1]]},
        {"position": None},
        {"position": {"t": {"0": "x"}}},
        {"accepts": {}},
        {"decoder": 2},
    ],
)
def test_what_is_no_entry_raises_an_expected_error(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        parse_entry(0, facts(**changes))
