"""Any run, any entry to begin after: what is right is called right, what is wrong is found.

The table is that which the rule leaves of all records. So a whole verification of it finds nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from rivermouth.config import Config
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.proofs.key_rules import Change
from rivermouth.verification.proofs.keyed import Latest
from rivermouth.verification.proved import Place, Recording
from rivermouth.verification.result import Kind
from tests.unit.verification.doubles import (
    CREATE,
    STAMP_MS,
    ZERO,
    MemorySource,
    commit,
    configured,
    found,
    message,
    row,
    value,
)
from tests.unit.verification.test_since import LAST, PROVED, verified

pytestmark = pytest.mark.unit

SEEDS = range(12)
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run of an upsert: its commits, its records with the entry of each, and its rows."""

    commits: Sequence[Commit]
    records: Sequence[Message]
    changes: Sequence[tuple[int, Change]]
    rows: Sequence[Row]

    def touched(self, after: int) -> set[int]:
        """The keys of the records of later entries."""
        return {key for key, change in self.changes if change.entry >= after}


def run(seed: int, *, ordered: bool) -> Run:
    chance = random.Random(seed)
    entries, offset = list[Commit](), 0
    records, changes = list[Message](), list[tuple[int, Change]]()
    for number in range(1, chance.randint(3, 7)):
        first = offset
        for _ in range(chance.randint(0, 6)):
            key, n = chance.randint(0, 5), chance.choice([None, 0, 1, 2, 3])
            text = None if n is None else value(key, n)
            records.append(message(offset, text, key.to_bytes(8, "big")))
            order = (n,) if ordered and n is not None else ()
            made = Change(number - 1, ZERO, offset, order, STAMP_MS * 1000, text)
            changes.append((key, made))
            offset += 1
        entries.append(commit(number, first, offset))
    rule = Latest(ordered=ordered)
    rows = list[Row]()
    for key in sorted({key for key, _ in changes}):
        left = rule.expected([each for own, each in changes if own == key], 0, certain=True).row
        if left is not None:
            n = int(str(left.value).rpartition(":")[2].rstrip("}' "))
            rows.append(row(key, n, left.offset))
    return Run([CREATE, *entries], records, changes, rows)


def proved(config: Config, made: Run, rows: Sequence[Row], after: int | None) -> dict[Kind, int]:
    """What a verification finds that begins after an entry (None: it reads all)."""
    place = Place(after or 1, f"p-{after}", after or 1)
    known = Recording(replace(PROVED, last=place)) if after else Recording()
    source = MemorySource({ZERO: made.records})
    since = LAST if after else None
    proof = verified(config, rows, commits=made.commits, source=source, since=since, known=known)
    assert (proof.read_all, proof.unchecked) == (None, ())
    return found(proof)


def cases(tmp_path: Path, seed: int, *, ordered: bool) -> tuple[Config, Run]:
    order = {"order_by": ["n"]} if ordered else {}
    config = configured(tmp_path, mode="upsert", keys=["id"], key="long", **order)
    return config, run(seed, ordered=ordered)


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "the last wins"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_part_of_a_right_table_is_called_wrong(seed: int, ordered: bool, tmp_path: Path) -> None:
    config, made = cases(tmp_path, seed, ordered=ordered)
    for after in (None, *range(1, len(made.commits))):
        assert proved(config, made, made.rows, after) == {}


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "the last wins"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_of_a_touched_key_that_is_gone_or_doubled_is_found_and_no_other(
    seed: int, ordered: bool, tmp_path: Path
) -> None:
    config, made = cases(tmp_path, seed, ordered=ordered)
    for after in range(1, len(made.commits)):
        for each in made.rows:
            wrong = 1 if each["id"] in made.touched(after) else 0
            without = [other for other in made.rows if other is not each]
            assert sum(proved(config, made, without, after).values()) == wrong
            assert sum(proved(config, made, [*made.rows, each], after).values()) == wrong
