"""Spoiling the ledger: entries, their ``txn``, and commits of others between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from tests.faults.checker.scene import Facts, Scene


def drop_an_entry(scene: Scene) -> None:
    version, _ = scene.clean_entries(scene.append)[0]
    actions = scene.actions(scene.append.table, version)
    for each in actions:
        each.get("commitInfo", {}).pop("userMetadata", None)
    scene.write_commit(scene.append.table, version, actions)


def remove_a_commit(scene: Scene) -> None:
    scene.remove_commit(scene.append.table, scene.clean_entries(scene.append)[0][0])


def _edit(
    scene: Scene, change: Callable[[Facts], object], txn: Callable[[int], int] | None = None
) -> None:
    version, entry = scene.clean_entries(scene.append)[-1]
    number = txn(entry["sequence"]) if txn else None
    scene.edit_entry(scene.append, version, change, number)


def _widest(entry: Facts) -> list[Any]:
    entry.pop("rows", None)
    widest: list[Any] = max(entry["ranges"], key=lambda each: each[3] - each[2])
    return widest


def overlap(scene: Scene) -> None:
    _edit(scene, lambda entry: _move_start(entry, -1))


def leave_a_gap(scene: Scene) -> None:
    _edit(scene, lambda entry: _move_start(entry, 1))


def _move_start(entry: Facts, by: int) -> None:
    _widest(entry)[2] += by


def rewind(scene: Scene) -> None:
    entry = _next_entry(scene.entries(scene.append))
    topic, partition, _, until = _widest(scene.clean_entries(scene.append)[-1][1])
    entry["ranges"] = [[topic, partition, until - 3, until - 1]]
    entry["position"][topic][str(partition)] = until - 1
    scene.add_entry(scene.append, entry)


def repeat_a_sequence(scene: Scene) -> None:
    _edit(scene, lambda entry: entry.update(sequence=entry["sequence"] - 1), lambda n: n - 1)


def repeat_a_commit_id(scene: Scene) -> None:
    other = scene.clean_entries(scene.append)[0][1]["commit"]
    _edit(scene, lambda entry: entry.update(commit=other))


def change_a_txn(scene: Scene) -> None:
    _edit(scene, lambda entry: None, lambda n: n - 1)


def change_a_topic_id(scene: Scene) -> None:
    _edit(scene, lambda entry: entry.update(topics=dict.fromkeys(entry["topics"], "other")))


def state_other_counts(scene: Scene) -> None:
    _edit(scene, lambda entry: entry.update(rows=[[1000, 0] for _ in entry["ranges"]]))


def delete_behind_the_ledger(scene: Scene) -> None:
    table = scene.append.table
    file = scene.files(table)[0]
    remove = {"remove": {"path": file.name, "dataChange": True}}
    scene.add_commit(table, {"commitInfo": {"operation": "DELETE"}}, remove)


def claim_deletes(scene: Scene) -> None:
    """Rows are lost, and an entry says that this was on purpose: nobody accepts that here."""
    delete_behind_the_ledger(scene)
    version, entry = scene.entries(scene.append)[-1]
    [[topic, partition, start, until], *_] = entry["ranges"]
    rows = {topic: {str(partition): [start, max(1, until - start)]}}
    claimed = _staying(_next_entry(scene.entries(scene.append)))
    scene.add_entry(scene.append, {**claimed, "deletes": [{"version": version, "rows": rows}]})


def go_on_after_a_restore(scene: Scene) -> None:
    version, _ = scene.clean_entries(scene.append)[-1]
    scene.restore_before(scene.append.table, version)
    scene.add_entry(scene.append, _staying(_next_entry(scene.entries(scene.append))))


def go_on_after_a_truncate(scene: Scene) -> None:
    _go_on_after(scene, "TRUNCATE")


def go_on_after_a_replace(scene: Scene) -> None:
    kept = scene.files(scene.upsert.table)[-1]
    shutil.copy(kept, kept.with_name("kept.parquet"))
    add = {"add": {"path": "kept.parquet", "dataChange": True}}
    _go_on_after(scene, "CREATE OR REPLACE TABLE AS SELECT", add)


def _go_on_after(scene: Scene, operation: str, *adds: Facts) -> None:
    upsert = scene.upsert
    files = scene.files(upsert.table)
    removes = [{"remove": {"path": each.name, "dataChange": True}} for each in files]
    scene.add_commit(upsert.table, {"commitInfo": {"operation": operation}}, *removes, *adds)
    scene.add_entry(upsert, _staying(_next_entry(scene.entries(upsert))))


def _next_entry(entries: list[tuple[int, Facts]]) -> Facts:
    """An entry that covers nothing and follows on the newest."""
    _, entry = entries[-1]
    entry.pop("rows", None)
    return {**entry, "sequence": entry["sequence"] + 1, "commit": "another", "ranges": []}


def _staying(entry: Facts) -> Facts:
    """The entry with an empty range where the position stands, for each partition."""
    ranges = [
        [topic, int(partition), offset, offset]
        for topic, partitions in entry["position"].items()
        for partition, offset in partitions.items()
    ]
    return {**entry, "ranges": ranges}
