"""The checker on what an operator accepted: deleted rows, another topic, a log that was cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.faults.checker import check as checking
from tests.faults.checker.check import check
from tests.faults.checker.cursor import Cursor
from tests.faults.checker.scene import Facts, Scene
from tests.faults.checker.verdict import Fault, Verdict
from tests.faults.small_lake import Small

pytestmark = pytest.mark.unit


@pytest.fixture(params=[(), ("id",)], ids=["append", "upsert"])
def small(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A table with six rows, of which somebody deleted two on purpose; then two more were read."""
    made = Small(tmp_path, request.param)
    monkeypatch.setattr(checking, "Cluster", lambda servers: made.broker)
    made.broker.add(*((n, 0) for n in range(6)), (99, -1))
    made.batch([], (0, 0, 0))
    rows = [(n, 0, 0, n) for n in range(6)]
    made.batch(rows, (0, 0, 7), bad=[(0, 6, b"99", b"?")])
    return made


def erased(small: Small) -> int:
    """Ids 2 and 4 are deleted, and that is accepted; then ids 6 and 4, again, come in."""
    version = small.delete("id = 2 or id = 4")
    small.stay(deletes=[{"version": version, "rows": {"t": {"0": [2, 1, 1, 1]}}}])
    small.broker.add((6, 0), (4, 0))
    later = [(6, 0, 0, 7), (4, 0, 0, 8)]
    left = [(n, 0, 0, n) for n in (0, 1, 3, 5)] if small.keys else []
    small.batch([*left, *later], (0, 7, 9))
    return version


def recreated(small: Small, accept: bool = True) -> None:
    """The topic is created again: ids 1 and 7, at offsets that were known."""
    small.recreate((1, 1), (7, 1))
    if accept:
        small.changed(["topic"], [["t", 0, 7, 0]], topics={"t": "first"})
    left = [(n, 0, 0, n) for n in (0, 2, 3, 4, 5)] if small.keys else []
    small.batch([*left, (1, 1, 0, 0), (7, 1, 0, 1)], (0, 0, 2))


def cut(small: Small) -> None:
    """The log loses what is from offset 4 on, and other records take these offsets."""
    small.broker.logs[0] = small.broker.logs[0][:4]
    small.broker.add((8, 1), (9, 1), (3, 1), (10, 1))
    small.changed(["truncation"], [["t", 0, 7, 4]])
    left = [(n, 0, 0, n) for n in (0, 1, 2, 4, 5)] if small.keys else []
    rows = [(8, 1, 0, 4), (9, 1, 0, 5), (3, 1, 0, 6), (10, 1, 0, 7)]
    small.batch([*left, *rows], (0, 4, 8))


def judged(small: Small, cursor: Cursor | None = None) -> Verdict:
    return check(small.evidence, cursor)


STORIES: dict[str, Callable[[Small], object]] = {
    "erased": erased,
    "recreated": recreated,
    "cut": cut,
}


@pytest.mark.parametrize("story", STORIES)
def test_what_was_accepted_is_no_fault_as_a_whole_or_bit_by_bit(small: Small, story: str) -> None:
    before = judged(small)
    assert before.ok, str(before)
    STORIES[story](small)
    on = judged(small, before.cursor)
    assert (on.ok, on.unchecked) == (True, 0), str(on)
    whole = judged(small)
    assert whole.ok, str(whole)
    assert bool(whole.unchecked) == (story != "erased"), "Kafka has no former records any more"


def test_rows_may_be_deleted_before_and_after_a_topic_was_created_again(small: Small) -> None:
    seen = judged(small)
    recreated(small)
    seen = judged(small, seen.cursor)
    former = small.delete("id = 0")
    small.stay(deletes=[{"version": former, "rows": {"t": {"0": [0, 1]}}}])
    assert judged(small, seen.cursor).ok
    present = small.delete("id = 7")
    small.stay(deletes=[{"version": present, "rows": {"t": {"0": [1, 1]}}}])
    verdict = judged(small, seen.cursor)
    assert verdict.ok, str(verdict)


def test_rows_that_nobody_can_list_any_more_are_counted(small: Small) -> None:
    version = small.delete("id = 2 or id = 4")
    for action in Scene(small.folder, small.evidence).actions(small.table, version):
        if "remove" in action:
            (small.table / action["remove"]["path"]).unlink()
    small.stay(deletes=[{"version": version, "unlisted": 2}])
    verdict = judged(small)
    assert verdict.ok, str(verdict)
    assert verdict.unchecked >= 2
    small.rewrite(lambda rows: rows.pop(0))
    if not small.keys:
        assert judged(small).faults == {Fault.LOST, Fault.CONSERVATION}


def test_a_table_that_is_emptied_starts_over_with_the_topic_that_is_there_now(small: Small) -> None:
    before = judged(small)
    recreated(small)
    before = judged(small, before.cursor)
    scene = Scene(small.folder, small.evidence)
    files = scene.files(small.table)
    removed = [{"remove": {"path": each.name, "dataChange": True}} for each in files]
    scene.add_commit(small.table, {"commitInfo": {"operation": "TRUNCATE"}}, *removed)
    small.position, small.accepted = {"0": 0}, []
    small.stay(accepts={"kind": "reset", "version": small.version})
    small.batch([(1, 1, 0, 0), (7, 1, 0, 1)], (0, 0, 2))
    verdict = judged(small, before.cursor)
    assert verdict.ok, str(verdict)
    assert judged(small).ok


def test_log_cleanup_leaves_the_offsets_table_to_tell_of_another_topic(small: Small) -> None:
    recreated(small)
    DeltaTable(str(small.table)).create_checkpoint()
    small.broker.add((20, 5))
    now = [(1, 1, 0, 0), (7, 1, 0, 1), (20, 5, 0, 2)]
    left = [*((n, 0, 0, n) for n in (0, 2, 3, 4, 5)), *now[:2]] if small.keys else []
    small.batch([*left, now[2]], (0, 2, 3))
    scene = Scene(small.folder, small.evidence)
    for version in range(small.version):
        scene.remove_commit(small.table, version)
    verdict = judged(small)
    assert verdict.ok, str(verdict)
    assert verdict.records == 3


# Corruptions: after each, the checker finds these faults and no others.


def _last(small: Small, named: str) -> tuple[Scene, int]:
    scene = Scene(small.folder, small.evidence)
    found = [version for version, entry in scene.entries(scene.append) if named in entry]
    return scene, found[-1]


def edited(named: str, change: Callable[[Facts], object]) -> Callable[[Small], None]:
    """An entry that has a key is written again otherwise."""

    def spoil(small: Small) -> None:
        scene, version = _last(small, named)
        scene.edit_entry(scene.append, version, change)

    return spoil


def _rows(*numbers: int) -> Callable[[Facts], object]:
    return lambda entry: entry["deletes"][0].update(rows={"t": {"0": [*numbers]}})


def drop(offset: int, **values: Any) -> Callable[[Small], None]:
    def taken(rows: list[dict[str, Any]]) -> None:
        [one] = [
            row
            for row in rows
            if row["_kafka"]["offset"] == offset and all(row[n] == v for n, v in values.items())
        ]
        rows.remove(one)

    return lambda small: small.rewrite(taken)


def bring_back(small: Small) -> None:
    row = {"id": 2, "n": 0}

    def back(rows: list[dict[str, Any]]) -> None:
        rows.append({**row, "_kafka": {**rows[0]["_kafka"], "offset": 2}})

    small.rewrite(back)


def drop_the_acceptance(small: Small) -> None:
    edited("deletes", lambda entry: entry.pop("deletes"))(small)


def call_it_optimize(small: Small) -> None:
    """What is named as a DELETE is a commit of somebody else."""
    scene, version = _last(small, "deletes")
    at = next(
        each["version"] for _, e in scene.entries(scene.append) for each in e.get("deletes", ())
    )
    actions = scene.actions(small.table, at)
    for each in actions:
        if "commitInfo" in each:
            each["commitInfo"]["operation"] = "UPDATE"
    scene.write_commit(small.table, at, actions)
    del version


ERASED: dict[str, tuple[Callable[[Small], None], set[Fault], set[Fault]]] = {
    "a deletion that is not in the log": (
        edited(
            "deletes", lambda entry: entry["deletes"].append({**entry["deletes"][0], "version": 0})
        ),
        {Fault.ERASURE},
        {Fault.ERASURE},
    ),
    "a deletion that was something else": (
        call_it_optimize,
        {Fault.ERASURE, Fault.LEDGER, Fault.LOST, Fault.CONSERVATION},
        {Fault.ERASURE, Fault.LEDGER, Fault.LOST},
    ),
    "a row deleted and not named": (
        edited("deletes", _rows(2, 1)),
        {Fault.LOST, Fault.CONSERVATION},
        {Fault.LOST},
    ),
    "a row named that was not deleted": (
        edited("deletes", _rows(2, 3)),
        {Fault.ERASURE},
        {Fault.ERASURE},
    ),
    "a bad record named as deleted": (
        edited("deletes", _rows(2, 1, 1, 1, 1, 1)),
        {Fault.ERASURE},
        {Fault.ERASURE},
    ),
    "a row lost, and named beside the deleted ones": (
        lambda small: (drop(5)(small), edited("deletes", _rows(2, 1, 1, 2))(small))[0],
        {Fault.ERASURE, Fault.LOST, Fault.CONSERVATION},
        {Fault.ERASURE, Fault.LOST},
    ),
    "a deleted row that is there": (bring_back, {Fault.ERASURE}, {Fault.FOLD}),
    "rows deleted, and nobody accepted it": (
        drop_the_acceptance,
        {Fault.LEDGER, Fault.LOST, Fault.CONSERVATION},
        {Fault.LEDGER, Fault.LOST},
    ),
    "a deletion accepted by an entry that reads": (
        edited(
            "deletes",
            lambda entry: entry["ranges"][0].__setitem__(2, entry["ranges"][0][2] - 1),
        ),
        {Fault.LEDGER, Fault.REWIND, Fault.CONSERVATION},
        {Fault.LEDGER, Fault.REWIND, Fault.CONSERVATION},
    ),
}


@pytest.mark.parametrize("name", ERASED)
def test_a_corruption_of_accepted_deletes_is_found(small: Small, name: str) -> None:
    erased(small)
    assert judged(small).ok
    spoil, append, upsert = ERASED[name]
    spoil(small)
    verdict = judged(small)
    assert verdict.faults - {Fault.PROJECTION} == (upsert if small.keys else append), str(verdict)


def _moved(partition: int, was: int | None, now: int | None) -> Callable[[Facts], object]:
    def change(entry: Facts) -> None:
        entry["changes"]["moved"] = [["t", partition, was, now]]
        if partition == 0 and now is not None:
            entry["ranges"] = [["t", 0, now, now]]
            entry["position"] = {"t": {"0": now}}

    return change


def skip_without_a_name(entry: Facts) -> None:
    entry["changes"]["moved"] = []
    entry["ranges"], entry["position"] = [["t", 0, 9, 9]], {"t": {"0": 9}}


def _without_the_change(entry: Facts) -> None:
    entry.pop("changes")


CHANGED: dict[str, tuple[str, Callable[[Small], None], set[Fault]]] = {
    "offsets passed over that no move names": (
        "cut",
        edited("changes", skip_without_a_name),
        {Fault.LOST_RANGE, Fault.LEDGER, Fault.REWIND},
    ),
    "a move from where it did not stand": (
        "recreated",
        edited("changes", _moved(0, 6, 0)),
        {Fault.LEDGER},
    ),
    "the first records of another topic passed over": (
        "recreated",
        edited("changes", _moved(0, 7, 1)),
        {Fault.LOST_RANGE, Fault.DUP_RANGE},
    ),
    "another topic, and a partition that goes nowhere": (
        "recreated",
        edited("changes", lambda entry: entry["changes"].update(moved=[])),
        {Fault.LEDGER, Fault.REWIND},
    ),
    "another topic than before, which it was": (
        "recreated",
        edited("changes", lambda entry: entry["changes"].update(topics={"t": "other"})),
        {Fault.LEDGER},
    ),
    "another topic, and nobody accepted it": (
        "recreated",
        edited("changes", _without_the_change),
        {Fault.LEDGER, Fault.REWIND},
    ),
    "a cut to a place behind the position": (
        "cut",
        edited("changes", _moved(0, 7, 8)),
        {Fault.LOST_RANGE},
    ),
    "a cut that is called another topic": (
        "cut",
        edited("changes", lambda entry: entry["changes"].update(kinds=["topic"])),
        {Fault.LEDGER, Fault.REWIND},
    ),
    "a change that later entries forget": (
        "cut",
        edited("ranges", lambda entry: entry.update(accepted=[])),
        {Fault.LEDGER},
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_corruption_of_accepted_changes_is_found(small: Small, name: str) -> None:
    story, spoil, faults = CHANGED[name]
    STORIES[story](small)
    assert judged(small).ok
    spoil(small)
    verdict = judged(small)
    assert verdict.faults >= faults, str(verdict)


ROWS: dict[str, tuple[str, Callable[[Small], None], set[Fault]]] = {
    "a former row lost": ("recreated", drop(3, n=0), {Fault.LOST, Fault.CONSERVATION}),
    "a row lost at an offset that has a former row": (
        "recreated",
        drop(0, n=1),
        {Fault.LOST, Fault.CONSERVATION},
    ),
    "a row of a log that was cut lost": ("cut", drop(5, n=0), {Fault.LOST, Fault.CONSERVATION}),
    "a row behind the cut lost": ("cut", drop(5, n=1), {Fault.LOST, Fault.CONSERVATION}),
}


@pytest.mark.parametrize("name", ROWS)
def test_former_rows_and_present_ones_are_missed_each_for_itself(small: Small, name: str) -> None:
    story, spoil, faults = ROWS[name]
    before = judged(small)
    STORIES[story](small)
    spoil(small)
    verdict = judged(small, before.cursor)
    assert verdict.faults == ({Fault.LOST} if small.keys else faults), str(verdict)


def test_a_former_row_is_none_of_a_record_that_was_aborted_at_its_offset_since(
    small: Small,
) -> None:
    small.recreate((1, 1))
    for id_ in (8, 9):
        small.broker.abort(id_, 1)
    small.changed(["topic"], [["t", 0, 7, 0]], topics={"t": "first"})
    left = [(n, 0, 0, n) for n in (0, 2, 3, 4, 5)] if small.keys else []
    small.batch([*left, (1, 1, 0, 0)], (0, 0, 3))

    verdict = judged(small)
    assert verdict.ok, str(verdict)
    assert verdict.unchecked, "Kafka has no former records any more"


def recreated_twice(small: Small) -> None:
    """The topic is created again once more: ids 7 and 8, at offsets that were known twice."""
    recreated(small)
    small.recreate((7, 2), (8, 2))
    small.changed(["topic"], [["t", 0, 2, 0]], topics={"t": "second"})
    left = [(n, 0, 0, n) for n in (0, 2, 3, 4, 5)] if small.keys else []
    one = [(1, 1, 0, 0)] if small.keys else []
    small.batch([*left, *one, (7, 2, 0, 0), (8, 2, 0, 1)], (0, 0, 2))


def test_a_row_of_each_of_two_topics_that_are_gone_may_have_one_offset(small: Small) -> None:
    recreated_twice(small)
    verdict = judged(small)
    assert verdict.ok, str(verdict)

    def twice(rows: list[dict[str, Any]]) -> None:
        rows.append(next(row for row in rows if row["_kafka"]["offset"] == 0 and row["n"] == 1))

    small.rewrite(twice)
    assert Fault.DUPLICATE in judged(small).faults


def test_a_topic_that_goes_later_changes_nothing_for_the_rows_of_earlier_ones(small: Small) -> None:
    recreated(small)
    one = judged(small)  # knows nothing of the first topic
    small.broker.add((10, 1))
    left = [(n, 0, 0, n) for n in (0, 2, 3, 4, 5)] if small.keys else []
    two = [(1, 1, 0, 0), (7, 1, 0, 1)] if small.keys else []
    small.batch([*left, *two, (10, 1, 0, 2)], (0, 2, 3))
    small.recreate((7, 2), (8, 2))  # before anybody read the record at 2
    small.changed(["topic"], [["t", 0, 3, 0]], topics={"t": "second"})
    left += [(1, 1, 0, 0), (10, 1, 0, 2)] if small.keys else []
    small.batch([*left, (7, 2, 0, 0), (8, 2, 0, 1)], (0, 0, 2))

    verdict = judged(small, one.cursor)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("offset", [0, 1])
def test_a_row_twice_is_found_where_a_former_record_had_its_offset(
    small: Small, offset: int
) -> None:
    recreated(small)

    def twice(rows: list[dict[str, Any]]) -> None:
        rows.append(next(r for r in rows if r["_kafka"]["offset"] == offset and r["n"] == 1))

    small.rewrite(twice)
    assert Fault.DUPLICATE in judged(small).faults


def test_writes_to_a_topic_that_is_gone_are_not_looked_for_in_the_new_one(
    small: Small, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    told: list[dict[str, Any]] = []

    def wrote(id_: int, n: int, offset: int) -> None:
        line = {"id": len(told), "topic": "t", "partition": 0, "key": f"{id_}"}
        told.append({**line, "value": f'{{"id":{id_},"n":{n}}}', "offset": offset, "phase": "ok"})

    for n in range(6):
        wrote(n, 0, n)
    wrote(50, 0, 40)  # nobody had read it when its topic was deleted
    told.append({"phase": "recreated", "topic": "t", "topic_id": "second"})
    wrote(1, 1, 0)
    wrote(7, 1, 1)
    before = judged(small)
    recreated(small)

    def found() -> Verdict:
        history.write_text("".join(json.dumps(each) + "\n" for each in told))
        evidence = small.evidence
        cursor = before.cursor
        from dataclasses import replace

        from tests.faults.checker.history import History

        cursor.history = History(history)
        return check(replace(evidence, history=history), cursor)

    assert found().ok, str(found())
    wrote(8, 1, 5)
    assert found().faults == {Fault.UNSEEN}
