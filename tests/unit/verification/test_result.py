"""Findings become a value: counts in full, a few lines of each kind, the keys of the JSON."""

from __future__ import annotations

import pytest

from rivermouth.verification.result import (
    PROBLEM_LINES,
    Findings,
    Kind,
    Unchecked,
    Verification,
    count,
)

pytestmark = pytest.mark.unit


def test_every_kind_keeps_its_count_and_shows_some_lines() -> None:
    findings = Findings("p")
    findings.add(Kind.MISSING, *(f"missing {each}" for each in range(100)), count=5000)
    findings.add(Kind.GAP, "a gap")
    proof = findings.proof()
    assert (proof.counts[Kind.MISSING], proof.counts[Kind.GAP]) == (5000, 1)
    assert "a gap" in proof.problems
    assert len(proof.problems) == PROBLEM_LINES + 1
    assert proof.problems[-1] == f"and {5001 - PROBLEM_LINES:,} more, 5,001 in all"
    assert not proof.ok


def test_what_is_unchecked_does_not_make_a_pipeline_fail() -> None:
    findings = Findings("p")
    findings.leave(Unchecked.EXPIRED, "t-0[0,5): expired in Kafka", 5)
    findings.leave(Unchecked.EXPIRED, "t-1[0,2): expired in Kafka", 2)
    findings.leave(Unchecked.TABLE, "the rows")
    proof = findings.proof()
    assert (proof.ok, proof.complete) == (True, False)
    assert proof.as_dict()["not_checked"] == {"tables": 1, "expired_offsets": 7}
    assert len(proof.unchecked) == 3


def test_what_is_unchecked_makes_a_strict_verification_fail() -> None:
    findings = Findings("p", strict=True)
    assert findings.proof().ok
    findings.leave(Unchecked.TABLE, "the rows")
    proof = findings.proof()
    assert not proof.ok
    assert proof.as_dict()["ok"] is False
    assert not Verification([proof]).ok


def test_the_json_has_the_keys_that_programs_read() -> None:
    findings = Findings("p")
    keys = ["name", "ok", "complete", "entries", "records", "quarantined", "skipped"]
    keys += ["lost", "erased"]
    kinds = [
        "missing",
        "duplicated",
        "different",
        "unexpected",
        "gaps",
        "overlaps",
        "faults",
        "offsets_table_differences",
        "wrongly_quarantined",
        "not_checked",
    ]
    assert list(findings.proof().as_dict()) == [
        *keys,
        *kinds,
        "accepted",
        "not_told",
        "since",
        "read_everything",
        "proof",
        "unchecked",
        "problems",
    ]
    findings.superseded = 3
    assert list(findings.proof().as_dict())[: len(keys) + 1] == [*keys, "superseded"]
    findings.add(Kind.FAULT, "a fault")
    whole = Verification([findings.proof(), Findings("q").proof()])
    assert not whole.ok
    assert [each["ok"] for each in whole.as_dict()["pipelines"]] == [False, True]


def test_numbers_have_their_nouns() -> None:
    assert (count(1, "row"), count(0, "row"), count(2000, "row")) == (
        "1 row",
        "0 rows",
        "2,000 rows",
    )


def test_offsets_are_shown_with_their_partition_and_of_many_only_some() -> None:
    findings = Findings("p")
    findings.add_offsets(Kind.MISSING, "t-0", range(7, 7 + 2 * PROBLEM_LINES), "gone")
    findings.add_offsets(Kind.DUPLICATED, "t-1", [5], "there again", 3)
    proof = findings.proof()
    assert (proof.counts[Kind.MISSING], proof.counts[Kind.DUPLICATED]) == (2 * PROBLEM_LINES, 3)
    assert proof.problems[:2] == ("t-0@7: gone", "t-1@5: there again")


def test_what_is_none_is_not_unchecked() -> None:
    findings = Findings("p", strict=True)
    findings.leave(Unchecked.KEYS, "0 keys", 0)
    assert (findings.unchecked, findings.proof().complete) == ([], True)
