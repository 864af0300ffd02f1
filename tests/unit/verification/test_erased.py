"""Rows that are gone on purpose are exempt, and no other; what did not happen is a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verification.ledger.chain import empties
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.ledger.restored import DeletesOfOthers
from rivermouth.verification.result import PipelineProof
from tests.unit.verification.doubles import (
    CREATE,
    MemorySource,
    commit,
    configured,
    message,
    restore,
    row,
    value,
    verification,
)
from tests.unit.verification.test_unchecked import found

pytestmark = pytest.mark.unit

KEYED: Mapping[str, Any] = {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}
AT = 3
"""The version of the DELETE in ``log``."""


def delete(rows: int | None, **parameters: Any) -> Commit:
    """A DELETE of others that tells how many rows it took, or does not."""
    metrics = {} if rows is None else {"numDeletedRows": str(rows)}
    predicate = {"predicate": '["(id = 1)"]', **parameters}
    info = {"operation": "DELETE", "operationParameters": predicate, "operationMetrics": metrics}
    return Commit(info, {})


def named(*numbers: int, version: int = AT) -> dict[str, Any]:
    return {"version": version, "rows": {"t": {"0": [*numbers]}}}


def accepts(sequence: int, at: int, *deletes: Mapping[str, Any]) -> Commit:
    """An entry that moves nothing and names deleted rows."""
    return commit(sequence, at, at, deletes=[*deletes])


def log(deleting: Commit, *deletes: Mapping[str, Any]) -> list[Commit]:
    """Entries over [0,3) and [3,6), a DELETE at version 3, what is accepted, an entry [6,8)."""
    entries = [commit(1, 0, 3), commit(2, 3, 6), deleting]
    return [CREATE, *entries, accepts(3, 6, *deletes), commit(4, 6, 8)]


def appended(folder: Path, commits: Sequence[Commit], *rows: int, **more: Any) -> PipelineProof:
    """The verification of an append of 8 records, of which the table has these rows."""
    source = MemorySource({("t", 0): [message(n, value(n, 1)) for n in range(8)]})
    return verification(configured(folder), source, [row(n, 1, n) for n in rows], commits, **more)


def test_without_an_entry_that_accepts_them_deleted_rows_are_missing(tmp_path: Path) -> None:
    commits = [CREATE, commit(1, 0, 3), commit(2, 3, 6), delete(2), commit(3, 6, 8)]
    assert found(appended(tmp_path, commits, 0, 3, 4, 5, 6, 7)) == {"missing": 2}


def test_named_rows_are_exempt_and_no_other_row(tmp_path: Path) -> None:
    commits = log(delete(3), named(1, 2, 1, 1))
    proof = appended(tmp_path, commits, 0, 3, 5, 6, 7)
    assert (found(proof), proof.erased, proof.complete) == ({}, 3, True)
    assert proof.as_dict()["erased"] == 3
    one_more = appended(tmp_path, commits, 0, 5, 6, 7)
    assert (found(one_more), one_more.erased) == ({"missing": 1}, 3)
    assert "t-0@3: neither" in one_more.problems[0]


def test_what_was_committed_after_the_delete_must_be_there(tmp_path: Path) -> None:
    proof = appended(tmp_path, log(delete(3), named(1, 2, 1, 1)), 0, 3, 5, 7)
    assert found(proof) == {"missing": 1}


@pytest.mark.parametrize(
    ("commits", "rows", "faults", "said"),
    [
        # An entry claims rows that are there.
        (log(delete(2), named(1, 2)), (0, 1, 3, 4, 5, 6, 7), {"unexpected": 1}, "but it is there"),
        # It claims more than the DELETE took: nothing of it is believed.
        (
            log(delete(1), named(1, 2)),
            (0, 3, 4, 5, 6, 7),
            {"faults": 1, "missing": 2},
            "entries name 2 rows, it took 1",
        ),
        (
            log(delete(3), named(1, 2), named(4, 1), named(5, 1)),
            (0, 3, 6, 7),
            {"faults": 3, "missing": 4},
            "entries name 4 rows, it took 3",
        ),
        (
            log(delete(2), {"version": AT, "unlisted": 3}),
            (0, 3, 4, 5, 6, 7),
            {"faults": 1, "missing": 2},
            "entries name 3 rows, it took 2",
        ),
        # What it names is no DELETE, or one of all rows, or comes later than the entry or the rows.
        (
            log(Commit({"operation": "OPTIMIZE"}, {}), named(1, 1)),
            (0, 2, 3, 4, 5, 6, 7),
            {"faults": 1, "missing": 1},
            "it is no DELETE of others",
        ),
        (
            log(delete(1), named(1, 1, version=2)),
            (0, 2, 3, 4, 5, 6, 7),
            {"faults": 1, "missing": 1},
            "it is no DELETE of others",
        ),
        (
            log(delete(1), named(1, 1, version=5)),
            (0, 2, 3, 4, 5, 6, 7),
            {"faults": 1, "missing": 1},
            "it came later than the entry",
        ),
        (
            log(delete(2), named(6, 1)),
            (0, 1, 2, 3, 4, 5, 7),
            {"faults": 1, "missing": 1},
            "t-0@6 was written later",
        ),
    ],
)
def test_an_entry_that_claims_what_did_not_happen_is_a_fault_and_is_not_believed(
    tmp_path: Path, commits: Sequence[Commit], rows: Sequence[int], faults: object, said: str
) -> None:
    proof = appended(tmp_path, commits, *rows)
    assert found(proof) == faults
    assert any(said in each for each in proof.problems), proof.problems


def test_where_the_commit_does_not_tell_a_number_named_rows_are_exempt(tmp_path: Path) -> None:
    proof = appended(tmp_path, log(delete(None), named(1, 2)), 0, 3, 4, 5, 6, 7)
    assert (found(proof), proof.erased) == ({}, 2)


def test_rows_that_nobody_can_name_are_unchecked_up_to_their_number(tmp_path: Path) -> None:
    commits = log(delete(2), {"version": AT, "unlisted": 2})
    proof = appended(tmp_path, commits, 0, 3, 4, 5, 6, 7)
    assert (found(proof), proof.as_dict()["not_checked"]) == ({}, {"rows_of_accepted_deletes": 2})
    assert found(appended(tmp_path, commits, 0, 3, 5, 6, 7)) == {"missing": 1}
    assert found(appended(tmp_path, commits, 0, 1, 3, 4, 5, 6)) == {"missing": 1}, "written later"


def test_after_clean_up_of_the_entries_nothing_of_their_rows_is_asked(tmp_path: Path) -> None:
    commits = log(delete(3), named(1, 2, 1, 1))
    for first in (2, 3, 4, 5):
        proof = appended(tmp_path, commits[first:], 0, 3, 5, 6, 7, first=first)
        assert found(proof) == {}, first


def test_a_restore_to_before_the_acceptance_makes_the_rows_missing_again(tmp_path: Path) -> None:
    commits = [*log(delete(1), named(1, 1))[:5], restore(3)]
    proof = appended(tmp_path, commits, 0, 2, 3, 4, 5)
    assert found(proof) == {"missing": 1, "faults": 1}, "the entry is rolled back, nobody accepts"


# Which DELETEs stand


@pytest.mark.parametrize(
    ("commits", "stand"),
    [
        ([CREATE, delete(2), delete(None)], {1: 2, 2: None}),
        (
            [
                CREATE,
                Commit(
                    {
                        "operation": "DELETE",
                        "operationParameters": {"predicate": "x"},
                        "operationMetrics": {"num_deleted_rows": 4},
                    },
                    {},
                ),
            ],
            {1: 4},
        ),
        ([CREATE, delete(2), restore(0)], {}),
        ([CREATE, delete(2), delete(3), restore(1)], {1: 2}),
        ([CREATE, delete(2), restore(0), restore(1)], {1: 2}),
        ([CREATE, delete(2), delete(1, predicate="[]")], {}),
        ([CREATE, delete(2), Commit({"operation": "TRUNCATE"}, {})], {}),
        ([CREATE, Commit({"operation": "DELETE"}, {"rivermouth/p": 1})], {}),
    ],
)
def test_deletes_of_others_stand_until_they_are_rolled_back(
    commits: Sequence[Commit], stand: object
) -> None:
    deletes = DeletesOfOthers()
    for version, each in enumerate(commits):
        deletes.take(version, each, empties=empties(each))
    assert deletes.rows() == stand


# One row for each key


def keyed(
    folder: Path, commits: Sequence[Commit], records: Sequence[Any], rows: Sequence[Any]
) -> PipelineProof:
    config = configured(folder, key="string", **KEYED)
    return verification(config, MemorySource({("t", 0): records}), rows, commits)


RECORDS = [
    message(0, value(1, 5)),
    message(1, value(2, 5)),
    message(2, value(1, 9)),  # replaces offset 0
    message(3, value(3, 5)),
    message(4, value(2, 7)),
    message(5, value(4, 5)),
    message(6, value(1, 3)),  # older than the row that was deleted
    message(7, value(5, 5)),
]
WHOLE = [row(2, 7, 4), row(3, 5, 3), row(4, 5, 5), row(5, 5, 7)]
"""Without key 1."""
BACK = row(1, 3, 6)


@pytest.mark.parametrize(
    ("deletes", "rows", "faults", "erased"),
    [
        # Key 1 was deleted (offset 2) and came back by a record that is older than the deleted row.
        ((named(2, 1),), [*WHOLE, BACK], {}, 1),
        ((named(2, 1),), WHOLE, {"missing": 1}, 1),
        ((named(2, 1),), [*WHOLE, row(1, 9, 2)], {"different": 1}, 1),
        ((), [*WHOLE, BACK], {"different": 1}, 0),
        # Key 4 was deleted and did not come back.
        ((named(2, 1, 2, 1),), [WHOLE[0], WHOLE[1], WHOLE[3], BACK], {}, 2),
        ((named(2, 1),), [WHOLE[0], WHOLE[1], WHOLE[3], BACK], {"missing": 1}, 1),
        ((named(2, 1, 2, 1),), [*WHOLE, BACK], {"unexpected": 1}, 2),
        # What is named did not stand: offset 0 had been replaced.
        ((named(0, 1),), [*WHOLE, BACK], {"faults": 1}, 0),
        # Nobody can tell which rows: at most two are explained, and none that came later.
        (({"version": AT, "unlisted": 2},), [WHOLE[0], WHOLE[1], WHOLE[3], BACK], {}, 0),
        (({"version": AT, "unlisted": 2},), [WHOLE[0], WHOLE[3], BACK], {"missing": 1}, 0),
        (({"version": AT, "unlisted": 2},), [*WHOLE[:3], BACK], {"missing": 1}, 0),
    ],
)
def test_a_key_whose_row_was_deleted_on_purpose_begins_anew(
    tmp_path: Path, deletes: Any, rows: Sequence[Any], faults: object, erased: int
) -> None:
    proof = keyed(tmp_path, log(delete(2), *deletes), RECORDS, rows)
    assert (found(proof), proof.erased) == (faults, erased), proof.problems


def test_after_an_accepted_delete_a_key_is_certain_whatever_has_expired_before(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, key="string", **KEYED)
    source = MemorySource({("t", 0): RECORDS[1:6]}, first={("t", 0): 1})
    commits = [*log(delete(1), named(2, 1))[:4], accepts(3, 6, named(2, 1))]
    right = verification(config, source, WHOLE[:3], commits)
    assert (found(right), right.erased) == ({}, 1)
    expired = verification(config, source, [*WHOLE[:3], row(1, 5, 0)], commits)
    assert found(expired) == {"unexpected": 1}
