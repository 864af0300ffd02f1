"""Accepted changes of the source: what earlier ranges explain is unchecked, nothing else is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.verification.ledger.entry import Commit, Partition
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.result import PipelineProof
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
from tests.unit.verification.test_unchecked import KEYED, found

pytestmark = pytest.mark.unit

ZERO: Partition = ("t", 0)
OTHER = {"topics": {"t": "id2"}}


def changed(sequence: int, kind: str, was: int | None, now: int | None, **more: Any) -> Commit:
    """The commit that accepts one kind of change, by which partition 0 moves."""
    changes: dict[str, Any] = {"kinds": [kind], "moved": [["t", 0, was, now]]}
    if kind == "topic":
        changes["topics"] = {"t": "id"}
    at = {} if now is None else {"0": now}
    ranges = [] if now is None else [["t", 0, now, now]]
    facts = {"changes": changes, "accepted": [[kind, sequence]], "position": {"t": at}, **more}
    return commit(sequence, 0, 0, **{"ranges": ranges, **facts})


def wrote(sequence: int, start: int, until: int, **more: Any) -> Commit:
    return commit(sequence, start, until, **{"accepted": [["topic", 2]], **more})


RECREATED = (CREATE, commit(1, 0, 6), changed(2, "topic", 6, 0, **OTHER), wrote(3, 0, 4, **OTHER))
"""Six records of the old topic were read, then four of the new one."""
OLD = [row(n, 1, n) for n in range(6)]
NEW = [row(100 + n, 1, n) for n in range(4)]


def source(*offsets: int, **facts: Any) -> MemorySource:
    """The new topic, with records at these offsets."""
    records = [message(n, value(100 + n, 1)) for n in offsets]
    known = {"topics": {"t": "id2"}, "ends": {ZERO: 4}, **facts}
    return MemorySource({ZERO: records}, **known)


def checked(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    commits: Sequence[Commit] = RECREATED,
    kafka: MemorySource | None = None,
    first: int = 0,
    **target: Any,
) -> PipelineProof:
    return verification(
        configured(folder, **target), kafka or source(0, 1, 2, 3), rows, commits, first=first
    )


def left(proof: PipelineProof) -> dict[str, int]:
    return {what.value: number for what, number in proof.left.items()}


def test_rows_of_the_old_topic_are_unchecked_and_those_of_the_new_one_are_proved(
    tmp_path: Path,
) -> None:
    proof = checked(tmp_path, [*OLD, *NEW])
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 6})
    assert (proof.records, proof.accepted) == (4, ("topic, in entry 2",))
    assert proof.as_dict()["accepted"] == ["topic, in entry 2"]


def test_a_whole_proof_tells_up_to_where_former_rows_are(tmp_path: Path) -> None:
    told = checked(tmp_path, [*OLD, *NEW]).reach
    assert told is not None
    assert told.former == {"t": {"0": 6}}
    trimmed = checked(tmp_path, [*OLD, *NEW], RECREATED[3:], first=3).reach
    assert trimmed is not None
    assert trimmed.former is None, "the accepted change is not in the log any more"


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ([*NEW], {}),  # whether the old rows should be there nobody can tell
        ([*OLD[4:], *NEW], {}),
        ([*OLD, *NEW[1:]], {"different": 1}),  # the row that is there is not the new record's
        ([*OLD[1:], *NEW[1:]], {"missing": 1}),
        ([*OLD, *NEW, NEW[2]], {"duplicated": 1}),
        ([*OLD, *OLD[5:], *NEW], {"duplicated": 1}),
        ([*OLD, *NEW, row(7, 1, 9)], {"unexpected": 1}),
        ([*OLD, *NEW[:2], row(0, 0, 2), *NEW[3:]], {"different": 1}),
    ],
    ids=[
        "new alone",
        "some old",
        "one new is missing",
        "both are missing",
        "thrice",
        "an old one twice",
        "in no range",
        "values of nobody",
    ],
)
def test_what_the_old_ranges_do_not_explain_is_found(
    tmp_path: Path, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, int]
) -> None:
    assert found(checked(tmp_path, rows)) == kinds


def test_an_offset_that_the_new_topic_does_not_show_may_be_an_old_row_but_not_two(
    tmp_path: Path,
) -> None:
    aborted = source(0, 1, 3)
    assert found(checked(tmp_path, [*OLD, NEW[0], NEW[1], NEW[3]], kafka=aborted)) == {}
    assert found(checked(tmp_path, [*OLD, *NEW], kafka=aborted)) == {"unexpected": 1}


def test_where_the_new_record_makes_no_row_an_old_one_may_stand_but_not_two(
    tmp_path: Path,
) -> None:
    records = [message(n, None if n == 2 else value(100 + n, 1)) for n in range(4)]
    kafka = MemorySource({ZERO: records}, topics={"t": "id2"}, ends={ZERO: 4})
    rows = [*OLD, *NEW[:2], NEW[3]]
    proof = checked(tmp_path, rows, kafka=kafka)
    assert (found(proof), proof.skipped) == ({}, 1)
    assert found(checked(tmp_path, [*rows, NEW[2]], kafka=kafka)) == {"unexpected": 1}


def test_each_accepted_change_may_have_left_a_row_of_an_offset(tmp_path: Path) -> None:
    again = [
        *RECREATED,
        changed(4, "topic", 4, 0, topics={"t": "id3"}),
        wrote(5, 0, 2, topics={"t": "id3"}),
    ]
    newest = [row(200 + n, 1, n) for n in range(2)]
    records = {ZERO: [message(n, value(200 + n, 1)) for n in range(2)]}
    kafka = MemorySource(records, topics={"t": "id3"}, ends={ZERO: 2})
    rows = [*OLD, *NEW, *newest]
    proof = checked(tmp_path, rows, again, kafka)
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 10})
    assert found(checked(tmp_path, [*rows, NEW[0]], again, kafka)) == {"duplicated": 1}
    assert found(checked(tmp_path, [*rows, OLD[5]], again, kafka)) == {"duplicated": 1}


TRUNCATED = (
    CREATE,
    commit(1, 0, 6),
    changed(2, "truncation", 6, 3),
    wrote(3, 3, 5, accepted=[["truncation", 2]]),
)
"""The log was cut at 3, and has other records at 3 and 4."""


def cut(*kept: int) -> MemorySource:
    records = [message(n, value(n, 1)) for n in kept]
    new = [message(n, value(100 + n, 1)) for n in (3, 4)]
    return MemorySource({ZERO: [*records, *new]}, ends={ZERO: 5})


def test_what_came_before_the_cut_is_still_proved(tmp_path: Path) -> None:
    new = [row(103, 1, 3), row(104, 1, 4)]
    proof = checked(tmp_path, [*OLD, *new], TRUNCATED, cut(0, 1, 2))
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 3})
    proof = checked(tmp_path, [*OLD[1:], *new], TRUNCATED, cut(0, 1, 2))
    assert found(proof) == {"missing": 1}
    assert found(checked(tmp_path, [OLD[0], *OLD, *new], TRUNCATED, cut(0, 1, 2))) == {
        "duplicated": 1
    }


def test_a_partition_that_is_gone_is_not_asked_for(tmp_path: Path) -> None:
    class Strict(MemorySource):
        def first_offsets(self, partitions: Any) -> dict[Partition, int]:
            assert [*partitions] == []
            return {}

    gone = (CREATE, commit(1, 0, 6), changed(2, "partitions", 6, None))
    proof = checked(tmp_path, OLD, gone, Strict())
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 6})
    assert found(checked(tmp_path, [*OLD, OLD[2]], gone, Strict())) == {"duplicated": 1}


def test_another_topic_that_nobody_accepted_stays_a_fault(tmp_path: Path) -> None:
    silent = (CREATE, commit(1, 0, 6), wrote(2, 6, 8, **OTHER))
    assert "faults" in found(checked(tmp_path, OLD, silent))


MOVES = {
    "it stood elsewhere": changed(2, "topic", 5, 0, **OTHER),
    "identity moves nothing": changed(2, "identity", 6, 0),
    "a cut goes back": changed(2, "truncation", 6, 7),
    "a topic is not gone": changed(2, "topic", 6, None, **OTHER),
    "the position is another": changed(2, "truncation", 6, 3, position={"t": {"0": 4}}, ranges=[]),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_move_that_its_kind_does_not_allow_is_a_fault(tmp_path: Path, name: str) -> None:
    proof = checked(tmp_path, OLD, (CREATE, commit(1, 0, 6), MOVES[name]), cut(0, 1, 2))
    assert "faults" in found(proof)


def test_where_clean_up_took_the_change_its_rows_are_unchecked_but_not_without_end(
    tmp_path: Path,
) -> None:
    trimmed = RECREATED[3:]
    proof = checked(tmp_path, [*OLD, *NEW], trimmed, first=3)
    assert found(proof) == {}
    assert found(checked(tmp_path, [*OLD, *NEW, NEW[0]], trimmed, first=3)) == {"duplicated": 1}
    assert found(checked(tmp_path, [*OLD[1:], *NEW[1:]], trimmed, first=3)) == {"missing": 1}


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_former_rows_of_a_retired_pipeline_are_its_own(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    theirs: Mapping[str, Any] = {"pipeline": "old", "topic": "other"}
    moved: Mapping[str, Any] = {"ranges": [["other", 0, 0, 0]], "position": {"other": {"0": 0}}}
    changes = {"kinds": ["topic"], "topics": {"other": "x"}, "moved": [["other", 0, 3, 0]]}
    commits = (
        CREATE,
        commit(1, 0, 3, **theirs),
        commit(2, 0, 0, **theirs, **moved, changes=changes),
        commit(1, 0, 4, topics={"t": "id2"}),
    )
    rows = [row(n, 1, n, ("other", 0)) for n in range(3)]
    proof = checked(tmp_path, [*rows, *NEW], commits, **target)
    assert (found(proof), left(proof)) == ({}, {"rows_of_retired_pipelines": 3})


# One row for each key


def test_a_key_of_the_old_topic_may_keep_its_row_and_one_of_the_new_must_have_its_own(
    tmp_path: Path,
) -> None:
    keyed = {**KEYED, "order_by": []}
    proof = checked(tmp_path, [*OLD, *NEW], **keyed)
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 6})
    assert found(checked(tmp_path, [*OLD, *NEW[1:]], **keyed)) == {"missing": 1}
    assert found(checked(tmp_path, [*OLD, *NEW, row(101, 1, 1)], **keyed)) == {"duplicated": 1}
    assert found(checked(tmp_path, [*OLD, *NEW[1:], row(100, 9, 0)], **keyed)) == {"different": 1}


@pytest.mark.parametrize(
    ("stays", "kinds"), [(5, {}), (1, {}), (0, {"different": 1})], ids=["newer", "as new", "older"]
)
def test_an_old_row_stands_at_the_same_offset_only_if_the_order_says_so(
    tmp_path: Path, stays: int, kinds: Mapping[str, int]
) -> None:
    """Key 100 has a record at offset 0 of both topics; only its order decides."""
    rows = [*NEW[1:], {**row(100, stays, 0)}]
    rows[-1]["_kafka"] = {**rows[-1]["_kafka"], "timestamp": 777}
    assert found(checked(tmp_path, rows, **KEYED)) == kinds


def test_an_entry_reads_message_keys_by_its_own_setting(tmp_path: Path) -> None:
    commits = (
        CREATE,
        commit(1, 0, 2, config={"key": None}),
        commit(2, 2, 4, config={"key": "string"}, accepted=[["identity", 2]]),
    )
    records = [
        message(0, value(1, 1)),
        message(1, None, b"1"),
        message(2, value(2, 1)),
        message(3, None, b"2"),
    ]
    bad = {"commit": "p-1", "topic": "t", "partition": 0, "offset": 1, "key": b"1", "value": None}
    config = configured(tmp_path, key="string", **KEYED)
    kafka = MemorySource({ZERO: records}, ends={ZERO: 4})
    proof = verification(config, kafka, [row(1, 1, 0)], commits, [bad])
    assert (found(proof), proof.complete) == ({}, True)
    assert found(verification(config, kafka, [], commits, [bad])) == {"missing": 1}


def test_quarantined_records_of_the_old_topic_are_unchecked(tmp_path: Path) -> None:
    facts = {"topic": "t", "partition": 0, "key": None, "value": b"{"}
    bad = [{"commit": commit_, "offset": 1, **facts} for commit_ in ("p-1", "p-3")]
    records = [
        message(0, value(100, 1)),
        message(1, b"{"),
        *(message(n, value(100 + n, 1)) for n in (2, 3)),
    ]
    kafka = MemorySource({ZERO: records}, topics={"t": "id2"}, ends={ZERO: 4})
    rows = [OLD[0], *OLD[2:], NEW[0], *NEW[2:]]
    proof = verification(configured(tmp_path), kafka, rows, RECREATED, bad)
    assert (found(proof), left(proof)) == ({}, {"rows_before_accepted_changes": 6})
    assert proof.quarantined == 1
    # The record of the old topic at that offset was a good one: its row stands.
    beside = verification(configured(tmp_path), kafka, [*rows, OLD[1]], RECREATED, bad[1:])
    assert found(beside) == {}


def test_a_row_that_is_missing_where_an_old_one_stands_is_found_among_any_number(
    tmp_path: Path,
) -> None:
    rows = [*OLD, NEW[0]]
    few = Bounds(window=1000, bucket=2, values=0)
    proof = verification(configured(tmp_path), source(0, 1, 2, 3), rows, RECREATED, bounds=few)
    assert found(proof) == {"different": 3}


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
@pytest.mark.parametrize("first", [1, 2])
def test_where_clean_up_took_entries_before_the_change_their_rows_are_unchecked(
    tmp_path: Path, first: int, target: Mapping[str, Any]
) -> None:
    rows = [*OLD, *NEW]
    proof = checked(tmp_path, rows, RECREATED[first:], first=first, **target)
    assert found(proof) == {}
    twice = checked(tmp_path, [*rows, NEW[0], NEW[0]], RECREATED[first:], first=first, **target)
    assert found(twice)["duplicated"]


def test_rows_deleted_on_purpose_before_a_change_are_none_of_the_rows_after_it(
    tmp_path: Path,
) -> None:
    info = {"operation": "DELETE", "operationParameters": {"predicate": '["(id < 3)"]'}}
    named = [{"version": 2, "rows": {"t": {"0": [1, 2]}}}]
    commits = [
        CREATE,
        commit(1, 0, 6),
        Commit(info, {}),
        commit(2, 6, 6, deletes=named),
        changed(3, "topic", 6, 0, **OTHER),
        wrote(4, 0, 4, accepted=[["topic", 3]], **OTHER),
    ]
    old = [OLD[0], *OLD[3:]]
    assert found(checked(tmp_path, [*old, *NEW], commits)) == {}
    one_less = checked(tmp_path, [*OLD[3:], *NEW[:1], *NEW[2:]], commits)
    assert found(one_less) == {"missing": 1}
