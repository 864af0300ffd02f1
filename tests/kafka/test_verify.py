"""One corruption of a good run for every kind of finding; a good run has none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic, delete_topic
from rivermouth.verification import Bounds, Kind, PipelineProof
from tests.kafka.topics import in_transaction
from tests.kafka.verify_world import Bad, Batch, Row, World, again, value
from tests.reading import table_at

pytestmark = pytest.mark.kafka

SMALL = Bounds(window=3, bucket=2)
PARTS = ["all", "since the first entry"]
"""Since an entry that covers no record, a proof finds the same as one of everything."""
GARBAGE = b"{not json"
APPEND, UPSERT = "verify-append", "verify-upsert"


@pytest.fixture(scope="module")
def topics(rivermouth_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The records of both good runs, written once; returns the servers."""
    servers = rivermouth_broker.bootstrap_servers
    folder = tmp_path_factory.mktemp("topics")
    append, upsert = World(folder, servers, APPEND), World(folder, servers, UPSERT)
    create_topic(servers, APPEND, 2)
    append.produce((0, None, value(i, i * 10)) for i in range(10))
    append.produce([(1, None, value(100 + i, i)) for i in range(3)], commit=True)  # 0-2, marker
    append.produce([(1, None, value(200 + i, i)) for i in range(2)], commit=False)  # 4-5, marker
    append.produce([(1, b"k", GARBAGE)])  # 7
    create_topic(servers, UPSERT, 2)
    upsert.produce(
        [
            (0, b"1", value(1, 5)),
            (0, b"1", value(1, 3)),  # ranks lower
            (0, b"2", value(2, 1)),
            (0, b"2", None),
            (0, b"3", value(3, 1)),
            (0, b"3", value(3, 1)),  # a tie: the later offset wins
            (0, b"9", GARBAGE),
            (1, b"4", value(4, 9)),
            (1, b"4", None),
            (1, b"4", value(4, 1)),  # ranks lower, but after the tombstone
            (1, b"5", value(5, None)),
            (1, b"5", value(5, -5)),  # null is lowest
        ]
    )
    upsert.produce([(1, b"1", value(1, 99))], commit=False)  # 5, marker
    return servers


def good_append() -> list[Batch]:
    """The commits of a good append run."""
    rows = [(i, i * 10, 0, i) for i in range(10)]
    return [
        Batch([(0, 0, 0), (1, 0, 0)]),
        Batch([(0, 0, 5), (1, 0, 4)], [*rows[:5], *((100 + i, i, 1, i) for i in range(3))]),
        Batch([(0, 5, 10), (1, 4, 7)], rows[5:]),
        Batch([(1, 7, 8)], bad=[(1, 7, b"k", GARBAGE)]),
    ]


def good_upsert() -> list[Batch]:
    """The commits of a good upsert run; the last one leaves the final rows."""
    rows = [(1, 5, 0, 0), (3, 1, 0, 5), (4, 1, 1, 2), (5, -5, 1, 4)]
    return [
        Batch([(0, 0, 0), (1, 0, 0)]),
        Batch([(0, 0, 4), (1, 0, 1)], records={0: 4, 1: 1}),
        Batch([(0, 4, 7), (1, 1, 7)], rows, [(0, 6, b"9", GARBAGE)], {0: 2, 1: 4}),
    ]


def write_all(world: World, batches: Sequence[Batch]) -> None:
    """Commit the batches in order, numbered from 1 where they have no number."""
    for number, batch in enumerate(batches, 1):
        batch.sequence = batch.sequence or number
        world.write(batch)


def found(proof: PipelineProof) -> dict[Kind, int]:
    return {kind: number for kind, number in proof.counts.items() if number}


Corrupt = Callable[[list[Batch]], object]
Damage = Callable[[World], object]
Expected = Mapping[Kind, int]


def both(*steps: Corrupt) -> Corrupt:
    """One step after the other."""

    def all_steps(batches: list[Batch]) -> None:
        for step in steps:
            step(batches)

    return all_steps


def add_row(batch: int, *rows: Row) -> Corrupt:
    return lambda batches: batches[batch].rows.extend(rows)


def add_bad(batch: int, *bad: Bad) -> Corrupt:
    return lambda batches: batches[batch].bad.extend(bad)


def drop_row(batch: int, index: int) -> Corrupt:
    return lambda batches: batches[batch].rows.pop(index)


def drop_bad(batch: int) -> Corrupt:
    return lambda batches: batches[batch].bad.clear()


def put_row(batch: int, index: int, row: Row) -> Corrupt:
    return lambda batches: batches[batch].rows.__setitem__(index, row)


def change(batch: int, **fields: Any) -> Corrupt:
    """Let a batch have other fields."""

    def changed(batches: list[Batch]) -> None:
        batches[batch] = replace(batches[batch], **fields)

    return changed


def recreated(batches: list[Batch]) -> None:
    """Let the ledger record another topic of the same name."""
    for batch in batches:
        batch.topic_id = "other"


def same_commit(batches: list[Batch]) -> None:
    batches[2].commit = batches[1].commit


# A row too many or too few is also another count than that of the offsets table.
ONE_MISSING = {Kind.MISSING: 1, Kind.OFFSETS_TABLE: 1}
ONE_TWICE = {Kind.DUPLICATED: 1, Kind.OFFSETS_TABLE: 1}
ONE_UNEXPECTED = {Kind.UNEXPECTED: 1, Kind.OFFSETS_TABLE: 1}
FIRST, LAST_BAD = (0, 0, 0, 0), (1, 7, b"k", GARBAGE)
BEFORE_APPEND: dict[str, tuple[Corrupt, Expected]] = {
    "a row dropped": (drop_row(1, 0), ONE_MISSING),
    "a row twice in a commit": (add_row(1, FIRST), ONE_TWICE),
    "a row again three times": (
        add_row(2, FIRST, FIRST, FIRST),
        {Kind.DUPLICATED: 3, Kind.OFFSETS_TABLE: 1},
    ),
    "a value changed": (put_row(1, 0, (0, 7, 0, 0)), {Kind.DIFFERENT: 1}),
    "two rows swapped": (
        both(put_row(1, 0, (1, 10, 0, 0)), put_row(1, 1, (0, 0, 0, 1))),
        {Kind.DIFFERENT: 2},
    ),
    "a row of a transaction marker": (add_row(1, (9, 9, 1, 3)), ONE_UNEXPECTED),
    "a row of an aborted record": (add_row(2, (200, 0, 1, 4)), ONE_UNEXPECTED),
    "a row past all ranges": (add_row(2, (9, 9, 0, 50)), ONE_UNEXPECTED),
    "an entry dropped": (
        both(lambda b: b.pop(2), change(2, sequence=4, ranges=[(0, 10, 10), (1, 7, 8)])),
        {Kind.GAP: 2, Kind.FAULT: 1},
    ),
    "a gap in a partition": (
        both(change(2, ranges=[(0, 6, 10), (1, 4, 7)]), drop_row(2, 0)),
        {Kind.GAP: 1},
    ),
    "an overlap": (change(2, ranges=[(0, 3, 10), (1, 4, 7)]), {Kind.OVERLAP: 1}),
    "a rewind": (lambda b: b.append(Batch([(0, 2, 5)])), {Kind.OVERLAP: 1}),
    "a commit id twice": (same_commit, {Kind.FAULT: 1}),
    "a sequence left out": (change(3, sequence=7), {Kind.FAULT: 1}),
    "another topic id": (recreated, {Kind.FAULT: 1}),
    "quarantined twice": (add_bad(3, LAST_BAD), ONE_TWICE),
    "in the table and in quarantine": (
        add_bad(1, (0, 0, None, value(0, 0))),
        {Kind.DUPLICATED: 1, Kind.QUARANTINE: 1, Kind.OFFSETS_TABLE: 1},
    ),
    "an aborted record in quarantine": (add_bad(2, (1, 4, None, value(200, 0))), ONE_UNEXPECTED),
    "quarantined under another entry": (
        both(add_bad(2, LAST_BAD), drop_bad(3)),
        {Kind.UNEXPECTED: 1, Kind.OFFSETS_TABLE: 2},
    ),
    "other bytes in quarantine": (
        both(drop_bad(3), add_bad(3, (1, 7, b"k", b"?"))),
        {Kind.DIFFERENT: 1},
    ),
    "a bad record nowhere": (drop_bad(3), ONE_MISSING),
}


@pytest.fixture
def append(topics: str, tmp_path: Path) -> World:
    return World(tmp_path, topics, APPEND)


@pytest.fixture
def upsert(topics: str, tmp_path: Path) -> World:
    return World(tmp_path, topics, UPSERT, mode="upsert", key="string")


@pytest.mark.parametrize("bounds", [Bounds(), SMALL], ids=["one window", "many windows"])
def test_a_good_append_run_is_proven(append: World, bounds: Bounds) -> None:
    write_all(append, good_append())
    proof = append.verify(bounds)
    assert proof.as_dict() == {
        "name": "p",
        "ok": True,
        "complete": True,
        "entries": 4,
        "records": 14,
        "quarantined": 1,
        "skipped": 0,
        "lost": 0,
        "erased": 0,
        "accepted": [],
        "not_told": [],
        "since": None,
        "read_everything": None,
        "proof": None,
        **{kind.value: 0 for kind in Kind},
        "not_checked": {},
        "unchecked": [],
        "problems": [],
    }


@pytest.mark.short(("part",), {(False,)})
@pytest.mark.parametrize("part", [False, True], ids=PARTS)
@pytest.mark.parametrize("case", BEFORE_APPEND)
def test_a_corrupt_append_run_is_found_out(append: World, case: str, part: bool) -> None:
    corrupt, expected = BEFORE_APPEND[case]
    batches = good_append()
    corrupt(batches)
    write_all(append, batches)
    proof = append.verify(SMALL, part=part)
    assert not proof.ok
    assert found(proof) == expected, proof.problems


def without_newest(world: World) -> None:
    rows = table_at(world.offsets)
    world.replace_table(world.offsets, rows.filter(pc.less(rows["sequence"], 4)))


def one_more(world: World) -> None:
    rows = table_at(world.offsets)
    world.replace_table(world.offsets, pa.concat_tables([rows, rows.slice(0, 1)]))


def edited(column: str, new: object) -> Damage:
    """Set a column of the newest row of the offsets table."""

    def damage(world: World) -> None:
        rows = table_at(world.offsets).sort_by("sequence").to_pylist()
        rows[-1][column] = new
        world.replace_table(world.offsets, pa.Table.from_pylist(rows))

    return damage


AFTER_APPEND: dict[str, tuple[Damage, Expected]] = {
    # Entries 3 and 4 are rolled back: the quarantine row of 4 does not count either.
    "restored to an earlier version": (lambda it: DeltaTable(it.table).restore(1), {Kind.FAULT: 1}),
    "emptied without an entry": (lambda it: it.commit_rows([], append=False), {Kind.MISSING: 13}),
    "our txn without an entry": (lambda it: it.commit_rows([], {"sequence": 5}), {Kind.FAULT: 2}),
    "a stale offsets table": (without_newest, {Kind.OFFSETS_TABLE: 1}),
    "a row twice in the offsets table": (one_more, {Kind.OFFSETS_TABLE: 1}),
    "a wrong count": (edited("quarantined", 0), {Kind.OFFSETS_TABLE: 1}),
    "a wrong end": (edited("until_offset", 9), {Kind.OFFSETS_TABLE: 1}),
    "a wrong end of the log": (edited("end_offset", 9), {Kind.OFFSETS_TABLE: 1}),
    "a wrong version": (edited("table_version", 1), {Kind.OFFSETS_TABLE: 1}),
    "a wrong commit": (edited("commit", "x"), {Kind.OFFSETS_TABLE: 1}),
    "a row of no entry": (edited("sequence", 9), {Kind.OFFSETS_TABLE: 2}),
}


@pytest.mark.short(("part",), {(False,)})
@pytest.mark.parametrize("part", [False, True], ids=PARTS)
@pytest.mark.parametrize("case", AFTER_APPEND)
def test_damage_after_a_good_append_run_is_found_out(append: World, case: str, part: bool) -> None:
    damage, expected = AFTER_APPEND[case]
    write_all(append, good_append())
    damage(append)
    proof = append.verify(SMALL, part=part)
    assert found(proof) == expected, proof.problems


def test_a_restore_that_is_itself_undone_leaves_nothing_to_report(append: World) -> None:
    write_all(append, good_append())
    newest = DeltaTable(append.table).version()
    DeltaTable(append.table).restore(1)
    DeltaTable(append.table).restore(newest)
    assert append.verify(SMALL).ok


def test_quarantine_left_over_by_a_crash_does_not_count(append: World) -> None:
    batches = good_append()
    write_all(append, batches)
    append.write_quarantine(again(batches[3]))
    assert append.verify(SMALL).ok


def test_a_pipeline_that_never_ran_has_nothing_wrong(append: World) -> None:
    proof = append.verify()
    assert proof.ok
    assert proof.unchecked == ("there is no table yet",)


def test_trimmed_entries_are_unchecked_and_their_rows_are_not_held_against_the_table(
    append: World,
) -> None:
    write_all(append, good_append())
    DeltaTable(append.table).create_checkpoint()
    for version in range(2):
        (append.table / "_delta_log" / f"{version:020d}.json").unlink()
    proof = append.verify(SMALL)
    assert proof.ok, proof.problems
    assert proof.unchecked == (
        "entries before 3: log clean-up removed them",
        "8 rows: log clean-up removed their entries",
    )


@pytest.mark.parametrize("bounds", [Bounds(), SMALL], ids=["one bucket", "many buckets"])
def test_a_good_upsert_run_is_proven(upsert: World, bounds: Bounds) -> None:
    write_all(upsert, good_upsert())
    proof = upsert.verify(bounds)
    assert proof.ok, proof.problems
    assert (proof.records, proof.quarantined, proof.superseded) == (12, 1, 7)
    assert proof.unchecked == ()


BEFORE_UPSERT: dict[str, tuple[Corrupt, Expected]] = {
    "a key missing": (drop_row(2, -1), {Kind.MISSING: 1}),
    "a key twice": (add_row(2, (1, 3, 0, 1)), {Kind.DUPLICATED: 1}),
    "an older row stands": (put_row(2, 0, (1, 3, 0, 1)), {Kind.DIFFERENT: 1}),
    "the first of a tie stands": (put_row(2, 1, (3, 1, 0, 4)), {Kind.DIFFERENT: 1}),
    "a row from before its tombstone stands": (put_row(2, 2, (4, 9, 1, 0)), {Kind.DIFFERENT: 1}),
    "a deleted row stands": (add_row(2, (2, 1, 0, 2)), {Kind.UNEXPECTED: 1}),
    "an aborted row stands": (put_row(2, 0, (1, 99, 1, 5)), {Kind.DIFFERENT: 1}),
    "a value changed": (put_row(2, 0, (1, 6, 0, 0)), {Kind.DIFFERENT: 1}),
    "a key from nowhere": (add_row(2, (8, 1, 0, 2)), {Kind.UNEXPECTED: 1}),
    "a bad record nowhere": (drop_bad(2), {Kind.DIFFERENT: 1, Kind.OFFSETS_TABLE: 1}),
    "a good record in quarantine": (
        both(add_bad(2, (1, 2, b"4", value(4, 1))), drop_row(2, 2)),
        {Kind.QUARANTINE: 1, Kind.OFFSETS_TABLE: 1},
    ),
}


@pytest.mark.short(("part",), {(False,)})
@pytest.mark.parametrize("part", [False, True], ids=PARTS)
@pytest.mark.parametrize("case", BEFORE_UPSERT)
def test_a_corrupt_upsert_run_is_found_out(upsert: World, case: str, part: bool) -> None:
    corrupt, expected = BEFORE_UPSERT[case]
    batches = good_upsert()
    corrupt(batches)
    write_all(upsert, batches)
    proof = upsert.verify(SMALL, part=part)
    assert found(proof) == expected, proof.problems


NUMBERS = itertools.count()


@pytest.fixture
def own(rivermouth_broker: Broker, tmp_path: Path) -> World:
    """A world with a topic of its own, two partitions."""
    topic = f"verify-own-{next(NUMBERS)}"
    create_topic(rivermouth_broker.bootstrap_servers, topic, 2)
    return World(tmp_path, rivermouth_broker.bootstrap_servers, topic)


def test_expired_records_are_unchecked_and_the_rest_is_still_proven(own: World) -> None:
    own.produce((0, None, value(i, i)) for i in range(8))
    rows = [(i, i, 0, i) for i in range(8)]
    write_all(own, [Batch([(0, 0, 4)], rows[:4]), Batch([(0, 4, 8)], [*rows[4:], rows[7]])])
    own.delete_before(0, 5)
    proof = own.verify(SMALL)
    assert proof.unchecked == (f"{own.topic}-0[0,5): expired in Kafka",)
    assert found(proof) == {Kind.DUPLICATED: 1}


def test_a_row_twice_is_found_even_where_kafka_has_forgotten_it(own: World) -> None:
    own.produce((0, None, value(i, i)) for i in range(4))
    rows = [(i, i, 0, i) for i in range(4)]
    write_all(own, [Batch([(0, 0, 4)], [*rows, rows[0]])])
    own.delete_before(0, 4)
    assert found(own.verify(SMALL)) == {Kind.DUPLICATED: 1}


def test_keys_that_expired_records_may_have_changed_are_unchecked(own: World) -> None:
    own.mode, own.key = "upsert", "string"
    own.produce([(0, b"1", value(1, 9)), (0, b"2", value(2, 1)), (0, b"1", value(1, 5))])
    own.produce([(0, b"3", value(3, 1)), (0, b"3", None), (0, b"3", value(3, 0))])
    rows = [(1, 9, 0, 0), (2, 1, 0, 1), (3, 0, 0, 5)]
    write_all(own, [Batch([(0, 0, 3)]), Batch([(0, 3, 6)], rows)])
    own.delete_before(0, 2)
    proof = own.verify(SMALL)
    assert proof.ok, proof.problems
    assert proof.unchecked == (
        f"{own.topic}-0[0,2): expired in Kafka",
        "2 keys: not verifiable without records that Kafka no longer holds",
    )


def test_an_open_transaction_behind_the_ranges_does_not_hold_up_the_proof(own: World) -> None:
    own.produce((0, None, value(i, i)) for i in range(3))
    own.produce([(0, None, value(7, 7))], commit=False)  # 3, marker at 4
    producer = in_transaction(own.servers, own.topic, value(9, 9), commit=None)
    write_all(own, [Batch([(0, 0, 5)], [(i, i, 0, i) for i in range(3)])])
    proof = own.verify()
    producer.abort_transaction()
    assert proof.ok, proof.problems
    assert proof.records == 3


def test_a_log_that_ends_before_the_ledger_is_a_fault(own: World) -> None:
    own.produce((0, None, value(i, i)) for i in range(3))
    write_all(own, [Batch([(0, 0, 5)], [(i, i, 0, i) for i in range(3)])])
    proof = own.verify()
    assert found(proof) == {Kind.FAULT: 1}
    assert proof.unchecked == (f"{own.topic}-0[3,5): Kafka's log ends before it",)


def test_a_topic_that_is_gone_leaves_its_rows_unchecked(own: World) -> None:
    own.produce([(0, None, value(1, 1))])
    write_all(own, [Batch([(0, 0, 1)], [(1, 1, 0, 0)])])
    delete_topic(own.servers, own.topic)
    proof = own.verify()
    assert found(proof) == {}
    assert proof.unchecked == (f"{own.topic}: no longer in Kafka",)
    assert not own.verify(strict=True).ok
