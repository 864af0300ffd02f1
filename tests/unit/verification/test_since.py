"""A verification that begins after an entry, in memory: what it reads, finds, and leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rivermouth.config import Config
from rivermouth.verification.beginning import Since
from rivermouth.verification.ledger.entry import Commit, Partition
from rivermouth.verification.proofs import key_check
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.proved import Before, Place, Proved, Recording
from rivermouth.verification.result import Kind, PipelineProof, Unchecked
from tests.unit.verification.doubles import (
    CREATE,
    TOPIC,
    ZERO,
    MemoryRows,
    MemorySource,
    commit,
    configured,
    found,
    message,
    row,
    value,
    verification,
)
from tests.unit.verification.offsets_rows import offsets_rows

pytestmark = pytest.mark.unit

COMMITS = (CREATE, commit(1, 0, 2), commit(2, 2, 4), commit(3, 4, 6), commit(4, 6, 8))
RECORDS = [message(each, value(each, 1)) for each in range(8)]
ROWS = [row(each, 1, each) for each in range(8)]
PROVED = Proved("p", "t.p", 1, Place(2, "p-2", 2), {TOPIC: {"0": 4}}, 1000, 2, 1000)
ON_RECORD = Recording(PROVED)
LAST = Since()
# A part that begins behind all rows of former records is verified as if there had been none.
CHANGED_BEFORE = (
    CREATE,
    *(commit(n, 2 * n - 2, 2 * n, accepted=[["topic", 1]]) for n in (1, 2, 3, 4)),
)
HISTORIES = pytest.mark.parametrize(
    ("commits", "known"),
    [(COMMITS, ON_RECORD), (CHANGED_BEFORE, Recording(replace(PROVED, former={})))],
    ids=["no change", "a change was accepted before"],
)


class Counting(MemorySource):
    """Notes which ranges were read."""

    ranges: dict[Partition, tuple[int, int]]

    def read(self, ranges: Mapping[Partition, tuple[int, int]]) -> Any:
        self.ranges = {**getattr(self, "ranges", {}), **ranges}
        return super().read(ranges)


class Later(MemoryRows):
    """The offsets table, which is asked for the rows above a sequence."""

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        after = re.search(r"sequence > (\d+)", predicate or "")
        for batch in super().batches(columns, predicate):
            later = pc.greater(batch.column("sequence"), int(after[1]) if after else 0)
            yield batch.filter(later)


def verified(
    config: Config,
    rows: Sequence[Mapping[str, Any]] = ROWS,
    *,
    commits: Sequence[Commit] = COMMITS,
    source: MemorySource | None = None,
    quarantine: Sequence[Mapping[str, Any]] = (),
    bad: Mapping[int, int] | None = None,
    since: Since | None = LAST,
    known: Recording = ON_RECORD,
) -> PipelineProof:
    txn = max((max(each.txns.values(), default=0) for each in commits), default=0)
    offsets = offsets_rows(commits, bad)
    return verification(
        config,
        source or Counting({ZERO: RECORDS}),
        MemoryRows(rows, txn=txn),
        commits,
        quarantine,
        projected=Later(offsets, pa.Table.from_pylist(offsets).schema),
        bounds=Bounds(3, 2),
        since=since,
        known=known,
    )


def before(proof: PipelineProof) -> Before | None:
    """What was not read again."""
    assert proof.reach is not None
    return proof.reach.before


def test_only_what_came_after_the_proof_is_read(tmp_path: Path) -> None:
    source = Counting({ZERO: RECORDS})
    proof = verified(configured(tmp_path), source=source)
    assert (proof.problems, proof.unchecked, proof.read_all) == ((), (), None)
    assert source.ranges == {ZERO: (4, 8)}
    assert (proof.entries, proof.records) == (2, 4)
    assert proof.reach is not None
    assert (proof.reach.before, proof.reach.last) == (Before(2, 1000), Place(4, "p-4", 4))


def test_where_nothing_came_nothing_is_read(tmp_path: Path) -> None:
    source = Counting({ZERO: RECORDS})
    proof = verified(configured(tmp_path), ROWS[:4], commits=COMMITS[:3], source=source)
    assert (proof.problems, proof.records, getattr(source, "ranges", {})) == ((), 0, {})


CORRUPTIONS = {
    "a new row is missing": (ROWS[:5] + ROWS[6:], {Kind.MISSING: 1}),
    "a new row is there twice": ([*ROWS, ROWS[6]], {Kind.DUPLICATED: 1}),
    "a new row has another value": ([*ROWS[:7], row(7, 9, 7)], {Kind.DIFFERENT: 1}),
    "a row of an offset that is in no range": ([*ROWS, row(9, 1, 9)], {Kind.UNEXPECTED: 1}),
    "a row without coordinates": ([*ROWS, row(9, 1, None)], {Kind.UNEXPECTED: 1}),
    "an older row is missing: that is not seen": (ROWS[1:], {}),
    "an older row is there twice: that is not seen": ([*ROWS, ROWS[0]], {}),
}


@HISTORIES
@pytest.mark.parametrize("case", [*CORRUPTIONS])
def test_what_is_wrong_in_the_new_part_is_found(
    case: str, commits: Sequence[Commit], known: Recording, tmp_path: Path
) -> None:
    rows, expected = CORRUPTIONS[case]
    proof = verified(configured(tmp_path), rows, commits=commits, known=known)
    assert (found(proof), proof.unchecked) == (expected, ())


def test_the_quarantine_is_read_from_there_on(tmp_path: Path) -> None:
    def bad(offset: int, sequence: int) -> dict[str, Any]:
        names = ("commit", "topic", "partition", "offset", "key", "value")
        return dict(zip(names, (f"p-{sequence}", TOPIC, 0, offset, None, b"?"), strict=True))

    records = [message(each, b"?" if each in (3, 5) else value(each, 1)) for each in range(8)]
    rows = [each for place, each in enumerate(ROWS) if place not in (3, 5)]
    config, source = configured(tmp_path), MemorySource({ZERO: records})
    held = [bad(3, 2), bad(5, 3)]
    proof = verified(config, rows, source=source, quarantine=held, bad={3: 1})
    assert (proof.problems, proof.quarantined) == ((), 1)
    twice = verified(config, rows, source=source, quarantine=[*held, bad(5, 3)], bad={3: 1})
    assert twice.counts[Kind.DUPLICATED] == 1


def test_a_void_proof_is_said_and_all_is_read(tmp_path: Path) -> None:
    known = Recording(replace(PROVED, last=Place(2, "another", 2)))
    source = Counting({ZERO: RECORDS})
    proof = verified(configured(tmp_path), source=source, known=known)
    assert proof.read_all == "version 2 is another commit than that of entry 2"
    assert source.ranges == {ZERO: (0, 8)}
    assert before(proof) is None


NOT_BUILT_ON = {
    "nothing is on record": (Recording(), "no proof is recorded"),
    "the record cannot be read": (Recording(problem="it is broken"), "it is broken"),
    "something was found since": (
        Recording(replace(PROVED, failed_ms=0)),
        "a verification at 1970-01-01T00:00:00.000Z found a fault",
    ),
    "it is of another table": (
        Recording(replace(PROVED, table="t.q")),
        "the recorded proof is of the table t.q",
    ),
}


@pytest.mark.parametrize("case", [*NOT_BUILT_ON])
def test_without_a_proof_to_build_on_all_is_read(case: str, tmp_path: Path) -> None:
    known, reason = NOT_BUILT_ON[case]
    assert verified(configured(tmp_path), known=known).read_all == reason


def test_since_a_time_says_that_what_is_before_was_not_checked(tmp_path: Path) -> None:
    at = [Commit({**each.info, "timestamp": 100 * n}, each.txns) for n, each in enumerate(COMMITS)]
    source = Counting({ZERO: RECORDS})
    proof = verified(
        configured(tmp_path), commits=at, source=source, since=Since(250), known=Recording()
    )
    assert (proof.problems, source.ranges) == ((), {ZERO: (4, 8)})
    assert before(proof) == Before(2, None)
    again = verified(configured(tmp_path), commits=at, since=Since(250))
    assert before(again) == Before(2, 1000), "the record proves all up to there"
    later = verified(configured(tmp_path), commits=at, since=Since(350))
    assert before(later) == Before(3, None), "the record does not reach so far"


AFTER_A_CHANGE = [
    *COMMITS[:2],
    *(commit(n, 2 * n - 2, 2 * n, accepted=[["topic", 2]]) for n in (2, 3, 4)),
]
"""The record reaches to offset 4."""


@pytest.mark.parametrize(
    "former",
    [None, {TOPIC: {"0": 5}}, {TOPIC: {"0": 4, "1": 1}}],
    ids=["not told", "not passed", "a partition that is gone"],
)
def test_where_rows_of_former_records_may_be_all_is_read(former: Any, tmp_path: Path) -> None:
    known = Recording(replace(PROVED, former=former))
    proof = verified(configured(tmp_path), commits=AFTER_A_CHANGE, known=known)
    assert proof.read_all is not None
    assert "rows from before an accepted change" in proof.read_all


@pytest.mark.parametrize("since", [LAST, Since(150)], ids=["last", "a time"])
@pytest.mark.parametrize("former", [{}, {TOPIC: {"0": 4}}])
def test_behind_all_former_records_a_part_is_read_as_ever(
    former: Any, since: Since, tmp_path: Path
) -> None:
    known = Recording(replace(PROVED, former=former))
    commits = [
        Commit({**each.info, "timestamp": 100 if n < 3 else 200}, each.txns)
        for n, each in enumerate(AFTER_A_CHANGE)
    ]
    source = Counting({ZERO: RECORDS})
    config = configured(tmp_path)
    proof = verified(config, [*ROWS, ROWS[1]], commits=commits, source=source, known=known)
    assert (proof.problems, proof.read_all, source.ranges) == ((), None, {ZERO: (4, 8)})
    assert found(verified(config, ROWS[:7], commits=commits, known=known, since=since)) == {
        Kind.MISSING: 1
    }


def test_a_record_of_another_entry_tells_nothing_of_former_records(tmp_path: Path) -> None:
    known = Recording(replace(PROVED, former={}, last=Place(2, "another", 2)))
    commits = [Commit({**each.info, "timestamp": 100}, each.txns) for each in AFTER_A_CHANGE]
    proof = verified(configured(tmp_path), commits=commits, known=known, since=Since(150))
    assert proof.read_all is not None


def test_a_record_that_others_wrote_by_hand_is_none() -> None:
    facts = replace(PROVED, former={TOPIC: {"0": 4}}).as_dict()
    assert Proved.parse(facts).former == {TOPIC: {"0": 4}}
    assert Proved.parse({**facts, "former": None}).former is None
    with pytest.raises(KeyError):
        Proved.parse({name: each for name, each in facts.items() if name != "former"})
    for wrong in ("t", {TOPIC: 4}, {TOPIC: {"0": "x"}}):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            Proved.parse({**facts, "former": wrong})


def test_a_delete_of_others_is_named_as_not_checked(tmp_path: Path) -> None:
    delete = Commit({"operation": "DELETE", "operationParameters": {"predicate": "id = 0"}}, {})
    proof = verified(configured(tmp_path), ROWS[1:], commits=[*COMMITS, delete])
    assert (found(proof), proof.left) == ({}, {Unchecked.FOREIGN: 1})


def upsert(tmp_path: Path, *, ordered: bool) -> Config:
    order = {"order_by": ["n"]} if ordered else {}
    return configured(tmp_path, mode="upsert", keys=["id"], key="long", **order)


def changes(*records: tuple[int, int | None]) -> MemorySource:
    """Records of keys; one whose ``n`` is None is a tombstone."""
    found = [
        message(at, None if n is None else value(key, n), key.to_bytes(8, "big"))
        for at, (key, n) in enumerate(records)
    ]
    return MemorySource({ZERO: found})


KEYED = changes((1, 5), (2, 5), (3, 5), (4, 5), (1, 9), (2, 1), (5, 1), (3, None))
GOOD = [row(1, 9, 4), row(2, 5, 1), row(4, 5, 3), row(5, 1, 6)]
KEYS = {
    "all is right": (GOOD, {}),
    "a touched key is missing": (GOOD[1:], {Kind.MISSING: 1}),
    "a touched key has its row from before": ([row(1, 5, 0), *GOOD[1:]], {Kind.DIFFERENT: 1}),
    "a touched key has two rows": ([*GOOD, row(1, 5, 0)], {Kind.DUPLICATED: 1}),
    "a deleted key is back": ([*GOOD, row(3, 5, 2)], {Kind.UNEXPECTED: 1}),
    "a row without coordinates": ([*GOOD, row(8, 1, None)], {Kind.UNEXPECTED: 1}),
    "a key of no record": ([*GOOD, row(7, 5, 7)], {Kind.UNEXPECTED: 1}),
    "a key that is not touched is missing: that is not seen": (GOOD[:2] + GOOD[3:], {}),
    "a key that is not touched has two rows: that is not seen": ([*GOOD, row(4, 5, 2)], {}),
}


@HISTORIES
@pytest.mark.parametrize("places", [1 << 10, 1], ids=["few collisions", "all collide"])
@pytest.mark.parametrize("case", [*KEYS])
def test_touched_keys_have_their_newest_row(
    case: str,
    places: int,
    commits: Sequence[Commit],
    known: Recording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_check, "_PLACES", places)
    rows, expected = KEYS[case]
    config = upsert(tmp_path, ordered=True)
    proof = verified(config, rows, source=KEYED, commits=commits, known=known)
    assert {
        kind: n for kind, n in found(proof).items() if kind is not Kind.OFFSETS_TABLE
    } == expected
    assert proof.unchecked == ()


def test_a_key_whose_earlier_row_ranks_higher_rests_on_the_earlier_proof(tmp_path: Path) -> None:
    proof = verified(upsert(tmp_path, ordered=True), GOOD, source=KEYED)
    assert before(proof) == Before(2, 1000, keys=1)


def test_rows_from_before_are_not_known_even_if_the_entry_is_in_the_first_version(
    tmp_path: Path,
) -> None:
    first = Recording(replace(PROVED, last=Place(1, "p-1", 0)))
    commits = (commit(1, 0, 4), *(commit(n, 2 * n, 2 * n + 2) for n in (2, 3)))
    proof = verified(
        upsert(tmp_path, ordered=True), GOOD, commits=commits, source=KEYED, known=first
    )
    assert {*found(proof)} <= {Kind.OFFSETS_TABLE}
    assert before(proof) == Before(1, 1000, keys=1)


def test_a_key_without_an_order_has_exactly_its_newest_row(tmp_path: Path) -> None:
    entries = [CREATE, *(commit(n, 2 * n - 2, 2 * n) for n in (1, 2, 3, 4))]
    config = upsert(tmp_path, ordered=False)
    newest = [row(1, 9, 4), row(2, 1, 5), row(4, 5, 3), row(5, 1, 6)]
    assert Kind.DIFFERENT not in found(verified(config, newest, commits=entries, source=KEYED))
    kept = found(verified(config, GOOD, commits=entries, source=KEYED))
    assert kept[Kind.DIFFERENT] == 1, "the row of key 2 is one from before"


def test_an_accepted_delete_of_ordered_keys_makes_it_read_all(tmp_path: Path) -> None:
    delete = Commit({"operation": "DELETE", "operationParameters": {"predicate": "id = 0"}}, {})
    accepting = commit(5, 8, 8, deletes=[{"version": 5, "rows": {TOPIC: {"0": [1, 1]}}}])
    commits = [*COMMITS, delete, accepting]
    proof = verified(upsert(tmp_path, ordered=True), GOOD, commits=commits, source=KEYED)
    assert proof.read_all == "entry 5 accepts a DELETE, and the keys have an order"


def test_a_delete_whose_rows_nobody_can_name_makes_it_read_all(tmp_path: Path) -> None:
    """It may have taken rows from before, and must not excuse others that came since."""
    delete = Commit({"operation": "DELETE", "operationParameters": {"predicate": "id < 3"}}, {})
    accepting = commit(4, 6, 6, deletes=[{"version": 4, "unlisted": 3}])
    commits = [*COMMITS[:4], delete, accepting, commit(5, 6, 8)]
    proof = verified(configured(tmp_path), [*ROWS[3:5], *ROWS[6:]], commits=commits)
    assert found(proof) == {Kind.MISSING: 1}, "three were deleted, and row 5 is gone, too"
    assert proof.read_all == "entry 4 accepts a DELETE whose rows nobody can name"


@pytest.mark.parametrize("since", [LAST, Since(250)], ids=["last", "a time"])
def test_where_a_proof_needs_the_whole_table_all_is_read(since: Since, tmp_path: Path) -> None:
    source = Counting({ZERO: RECORDS})
    config = configured(tmp_path, mode="insert", keys=["id"])
    proof = verified(config, source=source, since=since)
    assert proof.read_all == "the proof of the mode insert reads all of the table"
    assert (proof.problems, source.ranges) == ((), {ZERO: (0, 8)})
