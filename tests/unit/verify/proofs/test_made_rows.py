"""Records without a row: as many as a commit tells of were left out, more are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rivermouth.verify.ledger.entry import LedgerEntry, left_out, written
from rivermouth.verify.proofs.decoding import LeftOut
from rivermouth.verify.result import Findings, Kind, Unchecked


def entry(sequence: int, transform: str = "shop:large", left: int | None = 0) -> LedgerEntry:
    return LedgerEntry(1, sequence, "c", "k", {}, (), {}, (), transform=transform, left_out=left)


ENTRIES = [entry(1, "", 2), entry(2, left=0), entry(3, left=2), entry(4, left=None)]


@pytest.mark.parametrize(
    ("missing", "reported", "found", "left"),
    [
        ([], [], 0, 0),
        ([0, 1], [0, 1], 0, 0),  # the rows of these are all due
        ([2, 2], [], 0, 2),
        ([2, 2, 2], [], 1, 2),
        ([3, 3, 3], [], 0, 3),  # nobody knows how many
        ([0, 2, 3], [0], 0, 2),
    ],
)
def test_no_more_records_are_left_out_than_the_commit_tells(
    missing: list[int], reported: list[int], found: int, left: int
) -> None:
    findings, ledger = Findings("p"), LeftOut(ENTRIES)
    entries = np.array(missing, np.int64)
    due = ledger.without(("t", 0), np.arange(len(missing)), entries)
    assert entries[due].tolist() == reported
    ledger.report(findings)
    proof = findings.proof()
    assert proof.counts.get(Kind.MISSING, 0) == found
    assert proof.left.get(Unchecked.LEFT_OUT, 0) == left
    assert all("entry 3" in line and "t-0@0" in line for line in proof.problems)


def facts(applied: object, **more: object) -> dict[str, Any]:
    ranges = {"partitions": [0, 1, 3, 3], "spans": 9, "applied": applied}
    topics = {"t": {"id": "x", "ranges": ranges}, "u": {"id": "y"}}
    return {"topics": topics, "config": {}, "transform": "shop:large", **more}


@pytest.mark.parametrize(
    ("told", "metrics", "expected"),
    [
        (facts([1, 2, 3]), {"numOutputRows": "4"}, 2),
        (facts(5), {"numOutputRows": "15"}, 0),
        (facts(5), {}, None),
        (facts(0), {}, 0),
        (facts(5, counted=False), {}, 0),
        (facts(5, explode=True), {"numOutputRows": "40"}, None),
        ({"topics": {}, "config": {}}, {}, 0),
    ],
)
def test_a_commit_and_its_entry_tell_how_many_were_left_out(
    told: dict[str, Any], metrics: dict[str, str], expected: int | None
) -> None:
    assert left_out(told, metrics) == expected


@pytest.mark.parametrize(
    ("told", "metrics", "expected"),
    [
        (facts(5), {"numOutputRows": "40"}, 40),
        (facts(5), {}, None),
        (facts(0), {}, 0),
        (facts(5, counted=False), {}, None),
    ],
)
def test_a_commit_tells_how_many_rows_it_wrote(
    told: dict[str, Any], metrics: dict[str, str], expected: int | None
) -> None:
    assert written(told, metrics) == expected
