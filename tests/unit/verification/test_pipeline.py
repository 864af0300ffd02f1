"""A whole verification in memory: its order, its faults, and formats and shapes of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config import Config, TableName, Topics
from rivermouth.config.formats import FORMATS, Format
from rivermouth.config.registry import SHAPES
from rivermouth.verification.formats.reader import Reader, Undecodable
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.pipeline import verify_pipeline
from rivermouth.verification.proofs.decoding import decoded
from rivermouth.verification.proofs.proof import Bounds, Stored, Workspace
from rivermouth.verification.proofs.replay import replay
from rivermouth.verification.result import Kind, PipelineProof, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Unreadable
from tests.unit.verification.doubles import (
    CREATE,
    SCHEMA,
    ZERO,
    Expiring,
    MemoryCommits,
    MemoryRows,
    MemorySource,
    MemoryTables,
    commit,
    configured,
    found,
    message,
    row,
    value,
    verification,
)
from tests.unit.verification.offsets_rows import offsets_rows, offsets_table

pytestmark = pytest.mark.unit

RECORDS = [message(each, value(each, 1)) for each in range(4)]
ROWS = [row(each, 1, each) for each in range(4)]


COMMITS = (CREATE, commit(1, 0, 2), commit(2, 2, 4))


def verified(
    config: Config,
    rows: MemoryRows | None = None,
    commits: Sequence[Commit] = COMMITS,
    source: MemorySource | None = None,
    first: int = 0,
) -> PipelineProof:
    table, kafka = rows or MemoryRows(ROWS, txn=2), source or MemorySource({ZERO: RECORDS})
    offsets = offsets_table(offsets_rows(COMMITS))
    return verification(
        config, kafka, table, commits, projected=offsets, bounds=Bounds(3, 2), first=first
    )


def test_a_good_run_is_proven(tmp_path: Path) -> None:
    proof = verified(configured(tmp_path))
    assert proof.problems == ()
    assert (proof.entries, proof.records, proof.unchecked) == (2, 4, ())
    assert proof.superseded is None


def test_the_counts_of_the_offsets_table_are_compared_with_what_kafka_showed(
    tmp_path: Path,
) -> None:
    fewer = MemorySource({ZERO: RECORDS[1:]})  # compaction or a marker took offset 0
    proof = verified(configured(tmp_path), MemoryRows(ROWS[1:], txn=2), source=fewer)
    assert proof.problems == (
        "offsets table, sequence 1 t-0: records is 2, expected 1, applied is 2, expected 1",
    )


def test_a_log_that_cannot_be_read_ends_it_with_a_fault(tmp_path: Path) -> None:
    class NoLog(MemoryTables):
        def commits(self, table: TableName) -> MemoryCommits:
            raise Unreadable("no such catalog")

    config = configured(tmp_path)
    proof = verify_pipeline(
        config, NoLog(), config.pipelines["p"], MemorySource(), lambda *told: None, Bounds()
    )
    assert found(proof) == {Kind.FAULT: 1}
    assert proof.problems == ("the table's log cannot be read: no such catalog",)


def test_rows_that_cannot_be_read_are_a_fault_and_the_offsets_table_is_still_compared(
    tmp_path: Path,
) -> None:
    narrow = MemoryRows(ROWS, SCHEMA.remove(SCHEMA.get_field_index("n")), txn=3)
    commits = [*COMMITS, commit(3, 4, 4)]
    proof = verified(configured(tmp_path), narrow, commits)
    assert found(proof) == {Kind.FAULT: 1, Kind.OFFSETS_TABLE: 1}
    assert proof.problems == (
        "the table cannot be read: it lacks the columns n",
        "offsets table, sequence 3 t-0: no row",
    )
    assert proof.unchecked == ("the rows",)


def test_a_txn_of_an_entry_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    proof = verified(configured(tmp_path), MemoryRows(ROWS, txn=3))
    assert proof.problems == ("the snapshot's txn is 3, the newest readable entry is 2",)


def test_without_a_readable_entry_all_rows_are_unchecked(tmp_path: Path) -> None:
    proof = verified(configured(tmp_path), commits=[CREATE], first=2)
    assert Kind.FAULT in found(proof)
    assert "all rows: log clean-up removed every entry" in proof.unchecked


def test_what_the_ledger_records_as_lost_is_counted_and_named(tmp_path: Path) -> None:
    commits = [CREATE, commit(1, 0, 2), commit(2, 2, 4, lost=[["t", 0, 2, 4]])]
    source = MemorySource({ZERO: RECORDS[:2]})
    proof = verified(configured(tmp_path), MemoryRows(ROWS[:2], txn=2), commits, source)
    assert proof.lost == 2
    assert proof.unchecked == ("t-0[2,4): recorded as lost, Kafka deleted it",)


def test_topics_of_other_pipelines_of_the_table_are_left_to_their_verification(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path)
    ours = config.pipelines["p"]
    other = ours.model_copy(
        update={
            "name": "q",
            "source": ours.source.model_copy(update={"topics": Topics(("other",))}),
        }
    )
    both = config.model_copy(update={"pipelines": {"p": ours, "q": other}})
    rows = MemoryRows([*ROWS, row(9, 9, 9, ("other", 0))], txn=2)
    assert found(verified(both, rows)) == {}
    assert found(verified(config, rows)) == {Kind.UNEXPECTED: 1}


def pairs(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """A format of tests: ``id=1 n=2``."""

    def read(value: bytes) -> tuple[Any, ...]:
        try:
            found = dict(each.split("=") for each in value.decode().split())
            return tuple(int(found[name]) for name in columns)
        except (ValueError, KeyError) as fault:
            raise Undecodable(f"no pairs: {fault}") from fault

    return read


@pytest.mark.parametrize("target", [{}, {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}])
def test_a_new_format_is_a_function_and_one_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Mapping[str, Any]
) -> None:
    made_by = f"{__name__}:{pairs.__name__}"
    monkeypatch.setitem(FORMATS.by_name, "json", Format("json", "none:none", made_by, {}))
    config = configured(tmp_path, **target)
    records = [message(each, b"id=%d n=1" % each) for each in range(4)]
    good = verified(config, source=MemorySource({ZERO: records}))
    assert found(good) == {}
    records[1] = message(1, b"id=1 n=7")
    assert found(verified(config, source=MemorySource({ZERO: records}))) == {Kind.DIFFERENT: 1}
    records[1] = message(1, b"?")
    wrong = verified(config, source=MemorySource({ZERO: records}))
    assert wrong.counts[Kind.DIFFERENT] == 1
    assert any("cannot decode" in each and "no pairs" in each for each in wrong.problems)


def verify_sum(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """A shape of tests: one row whose ``n`` is the sum over all records."""
    read = subject.reader(stored.table.schema, ["n"], {})
    expected = sum(
        decoded(read, message.value())[0]
        for seen in replay(subject, stored, workspace.progress)
        for message, good in zip(seen.messages, seen.good, strict=True)
        if good
    )
    found = [each for batch in stored.table.batches(["n"]) for each in batch["n"].to_pylist()]
    if found != [expected]:
        subject.findings.add(Kind.DIFFERENT, f"the sum is {found}, expected {expected}")


def test_a_new_shape_is_a_function_and_one_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = replace(SHAPES.by_name["append"], proof=f"{__name__}:{verify_sum.__name__}")
    monkeypatch.setitem(SHAPES.by_name, "append", shape)
    config = configured(tmp_path)
    schema = pa.schema([("n", pa.int64())])
    good = verified(config, MemoryRows([{"n": 4}], schema, txn=2))
    assert (found(good), good.records) == ({}, 4)
    wrong = verified(config, MemoryRows([{"n": 5}], schema, txn=2))
    assert wrong.problems == ("the sum is [5], expected 4",)


# Records that Kafka deletes while they are verified: left out, and held against no table


SIX, GONE = 6, 3
"""The entry has so many records; so many are gone once the first offsets have been asked for."""
IDS = [0, 1, 2, 0, 1, 3]
TOTALS = pa.schema([("id", pa.int64()), ("c", pa.int64())])

MODES: Mapping[str, tuple[Mapping[str, Any], list[dict[str, Any]], pa.Schema]] = {
    "append": ({}, [row(id_, 1, at) for at, id_ in enumerate(IDS)], SCHEMA),
    "upsert": ({"keys": ["id"]}, [row(IDS[at], 1, at) for at in (2, 3, 4, 5)], SCHEMA),
    "insert": ({"keys": ["id"]}, [row(IDS[at], 1, at) for at in (0, 1, 2, 5)], SCHEMA),
    "aggregate": (
        {"keys": ["id"], "metrics": {"c": "count()"}},
        [{"id": id_, "c": IDS.count(id_)} for id_ in range(4)],
        TOTALS,
    ),
}


def expiring(folder: Path, mode: str, source: MemorySource) -> PipelineProof:
    target, rows, schema = MODES[mode]
    config = configured(folder, mode=mode, **target)
    commits = [CREATE, commit(1, 0, SIX)]
    offsets = offsets_table(offsets_rows(commits))
    return verification(config, source, MemoryRows(rows, schema, txn=1), commits, projected=offsets)


@pytest.mark.parametrize("mode", MODES)
def test_what_expires_while_it_is_verified_is_left_out_and_no_finding(
    tmp_path: Path, mode: str
) -> None:
    left = [message(at, value(IDS[at], 1)) for at in range(GONE, SIX)]

    proof = expiring(tmp_path, mode, Expiring({ZERO: left}, gone={ZERO: GONE}))

    assert proof.problems == ()
    assert proof.left[Unchecked.EXPIRED] == GONE
    assert proof.unchecked[0] == f"t-0[0,{GONE}): expired in Kafka"
    # The same records, of which Kafka says that it holds all: something is wrong.
    held = expiring(tmp_path, mode, MemorySource({ZERO: left}))
    assert not held.ok
    assert held.counts[Kind.OFFSETS_TABLE] == 1


@pytest.mark.parametrize("mode", MODES)
def test_while_nothing_expires_all_is_checked(tmp_path: Path, mode: str) -> None:
    records = [message(at, value(id_, 1)) for at, id_ in enumerate(IDS)]
    proof = expiring(tmp_path, mode, MemorySource({ZERO: records}))
    assert (proof.problems, proof.complete) == ((), True)
