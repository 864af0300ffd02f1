"""Rows of records that have several: DELETEs that were accepted exempt so many, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.ledger.erased import Budgets
from rivermouth.verification.result import Unchecked
from tests.unit.verification.doubles import (
    CREATE,
    MemorySource,
    commit,
    configured,
    message,
    row,
    value,
    verification,
)
from tests.unit.verification.test_erased import accepts, delete, named
from tests.unit.verification.test_unchecked import found

pytestmark = pytest.mark.unit

EACH = 3
"""The rows of a record."""


def exploded(sequence: int, start: int, until: int) -> Commit:
    written = {"operationMetrics": {"numOutputRows": str(EACH * (until - start))}}
    told: dict[str, Any] = {"transform": "shop:rows", "explode": True, "rows": [[until - start, 0]]}
    made = commit(sequence, start, until, **told)
    return replace(made, info={**made.info, **written})


def unlisted(rows: int) -> dict[str, Any]:
    return {"version": 3, "unlisted": rows}


@pytest.mark.parametrize(
    ("name", "lost", "took", "accepted", "kinds", "excused"),
    [
        ("nothing is accepted", {1: 2}, 2, (), {"missing": 2}, 0),
        ("some rows of a record", {1: 2}, 2, (named(1, 1),), {}, 2),
        ("all rows of a record, and of another one", {1: 3, 2: 1}, 4, (named(1, 2),), {}, 4),
        ("more than the DELETE took", {1: 3, 2: 1}, 3, (named(1, 1),), {"missing": 1}, 3),
        ("rows of another entry", {1: 1, 4: 2}, 1, (named(1, 1),), {"missing": 2}, 1),
        ("a number that is not told", {1: 3, 2: 1}, None, (named(1, 1),), {}, 4),
        ("rows that nobody can name", {1: 1, 4: 1}, 2, (unlisted(2),), {}, 2),
        ("more than nobody can name", {1: 1, 4: 2}, 2, (unlisted(2),), {"missing": 1}, 2),
        ("a part is named", {1: 3, 4: 1}, 4, (named(1, 1), unlisted(3)), {}, 4),
        ("a part, more", {1: 3, 4: 3}, 4, (named(1, 1), unlisted(3)), {"missing": 2}, 4),
        ("a part, more before it", {1: 3, 4: 3}, 4, (named(4, 1), unlisted(3)), {"missing": 2}, 4),
        ("rows from after the DELETE", {7: 1}, 2, (named(1, 1),), {"missing": 1}, 0),
    ],
)
def test_no_more_rows_are_exempt_than_the_deletes_took(
    tmp_path: Path,
    name: str,
    lost: Mapping[int, int],
    took: int | None,
    accepted: tuple[Mapping[str, Any], ...],
    kinds: Mapping[str, int],
    excused: int,
) -> None:
    entries = [exploded(1, 0, 3), exploded(2, 3, 6), delete(took), accepts(3, 6, *accepted)]
    rows = [row(n, 1, n) for n in range(8) for _ in range(EACH - lost.get(n, 0))]
    source = MemorySource({("t", 0): [message(n, value(n, 1)) for n in range(8)]})
    proof = verification(configured(tmp_path), source, rows, [CREATE, *entries, exploded(4, 6, 8)])
    assert found(proof) == kinds, proof.problems
    assert proof.left.get(Unchecked.ERASED, 0) == excused


@pytest.mark.parametrize(
    ("name", "lost", "took", "kinds"),
    [
        ("what the DELETE took, of one entry", {1: 3, 2: 1}, 4, {}),
        ("more than it took, of one entry", {1: 3, 2: 3}, 4, {"missing": 2}),
        ("what the DELETE took, of two entries", {1: 2, 4: 2}, 4, {}),
        ("more than it took, of two entries", {1: 3, 4: 3}, 4, {"missing": 2}),
    ],
)
def test_what_two_entries_tell_of_one_delete_exempts_no_more_than_it_took(
    tmp_path: Path, name: str, lost: Mapping[int, int], took: int, kinds: Mapping[str, int]
) -> None:
    told = [accepts(3, 6, named(1, 2)), accepts(4, 6, named(2, 1), named(4, 1))]
    entries = [exploded(1, 0, 3), exploded(2, 3, 6), delete(took), *told]
    rows = [row(n, 1, n) for n in range(6) for _ in range(EACH - lost.get(n, 0))]
    source = MemorySource({("t", 0): [message(n, value(n, 1)) for n in range(6)]})
    proof = verification(configured(tmp_path), source, rows, [CREATE, *entries])
    assert found(proof) == kinds, proof.problems


def test_an_entry_that_does_not_count_its_records_is_a_fault(tmp_path: Path) -> None:
    uncounted = commit(1, 0, 1, transform="shop:rows", explode=True)
    source = MemorySource({("t", 0): [message(0, value(0, 1))]})
    proof = verification(configured(tmp_path), source, [row(0, 1, 0)], [CREATE, uncounted])
    assert "does not count its records" in "\n".join(proof.problems)


# What takers can draw of givers that have a limit


@pytest.mark.parametrize(
    ("name", "amounts", "asked", "drawn"),
    [
        ("no giver", {1: 5}, [([], 2)], [0]),
        ("less than there is", {1: 5}, [([1], 2)], [2]),
        ("more than there is", {1: 5}, [([1], 7)], [5]),
        ("two takers share one", {1: 5}, [([1], 3), ([1], 3)], [3, 2]),
        ("of two givers", {1: 2, 2: 2}, [([1, 2], 3), ([1, 2], 3)], [3, 1]),
        ("no limit", {1: None}, [([1], 9), ([1], 9)], [9, 9]),
        ("the first makes room", {1: 2, 2: 2}, [([1, 2], 2), ([1], 2)], [2, 2]),
        ("it makes all the room it can", {1: 2, 2: 1}, [([1, 2], 2), ([1], 2)], [2, 1]),
        (
            "over two",
            {1: 1, 2: 1, 3: 1},
            [([1, 2], 1), ([2, 3], 1), ([1], 1), ([2], 1)],
            [1, 1, 1, 0],
        ),
    ],
)
def test_as_much_is_drawn_as_the_givers_have(
    name: str,
    amounts: Mapping[int, int | None],
    asked: Sequence[tuple[Sequence[int], int]],
    drawn: Sequence[int],
) -> None:
    budgets = Budgets(amounts)
    each = [budgets.draw(taker, givers, most) for taker, (givers, most) in enumerate(asked)]
    assert each == drawn, name
