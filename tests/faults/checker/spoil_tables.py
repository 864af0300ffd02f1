"""Spoiling tables: rows of targets, of quarantine, of the offsets table, and their files."""

from __future__ import annotations

import copy
from pathlib import Path

from tests.faults.checker.scene import Facts, Row, Scene

FAR = 1_000_000
"""An offset, an id, a count that the run does not reach."""


def drop_a_row(scene: Scene) -> None:
    table = scene.append.table
    scene.drop_row(table, scene.rows(table)[0])


def double_a_row(scene: Scene) -> None:
    table = scene.append.table
    scene.add_row(table, scene.rows(table)[0])


def swap_two_rows(scene: Scene) -> None:
    table = scene.append.table
    one, other = scene.rows(table)[:2]
    scene.change_row(table, one, lambda row: row.update(text=other["text"]))
    scene.change_row(table, other, lambda row: row.update(text=one["text"]))


def insert_an_aborted_row(scene: Scene) -> None:
    _insert_aborted(scene, scene.append.table, scene.append.topics[0])


def insert_an_aborted_row_into_the_upsert(scene: Scene) -> None:
    _insert_aborted(scene, scene.upsert.table, scene.upsert.topics[0])


def _insert_aborted(scene: Scene, table: Path, topic: str) -> None:
    history = scene.lines(scene.evidence.history)
    line = next(each for each in history if each["phase"] == "fail" and each["topic"] == topic)
    row = copy.deepcopy(scene.rows(table)[0])
    row["id"] = FAR
    row["_kafka"].update(partition=line["partition"], offset=line["offset"])
    scene.add_row(table, row)


def insert_a_phantom(scene: Scene) -> None:
    table = scene.append.table
    row = copy.deepcopy(scene.rows(table)[0])
    row["_kafka"]["offset"] = FAR
    scene.add_row(table, row)


def cut_a_data_file_short(scene: Scene) -> None:
    file = scene.files(scene.append.table)[-1]
    file.write_bytes(file.read_bytes()[:-20])


def cut_a_quarantine_file_short(scene: Scene) -> None:
    file = scene.files(scene.append.quarantine)[-1]
    file.write_bytes(file.read_bytes()[:-20])


def remove_a_data_file(scene: Scene) -> None:
    scene.files(scene.append.table)[-1].unlink()


def drop_a_key(scene: Scene) -> None:
    table = scene.upsert.table
    scene.drop_row(table, scene.rows(table)[0])


def double_a_key(scene: Scene) -> None:
    table = scene.upsert.table
    scene.add_row(table, scene.rows(table)[0])


def change_a_value(scene: Scene) -> None:
    table = scene.upsert.table
    scene.change_row(table, scene.rows(table)[0], lambda row: row.update(value="other"))


def bring_back_an_older_row(scene: Scene) -> None:
    table = scene.upsert.table
    rows = {row["id"]: row for row in scene.rows(table)}
    older = next(
        row
        for row in scene.rows(table, superseded=True)
        if row["id"] in rows and row["seq"] < rows[row["id"]]["seq"]
    )
    scene.change_row(table, rows[older["id"]], lambda row: row.update(older))


def bring_back_a_deleted_key(scene: Scene) -> None:
    table = scene.upsert.table
    there = {row["id"] for row in scene.rows(table)}
    gone = next(row for row in scene.rows(table, superseded=True) if row["id"] not in there)
    scene.add_row(table, gone)


def quarantine_a_good_record(scene: Scene) -> None:
    good = scene.rows(scene.append.table)[0]["_kafka"]
    entries = scene.entries(scene.append)
    commit = next(each["commit"] for _, each in entries if _covers(each, good))
    row = {**scene.rows(scene.append.quarantine)[0], "commit": commit}
    place = {name: good[name] for name in ("topic", "partition", "offset")}
    scene.add_row(scene.append.quarantine, {**row, **place, "key": b"?"})


def _covers(entry: Facts, kafka: Row) -> bool:
    return any(
        (topic, partition) == (kafka["topic"], kafka["partition"])
        and start <= kafka["offset"] < until
        for topic, partition, start, until in entry["ranges"]
    )


def lose_a_quarantined_record(scene: Scene) -> None:
    table = scene.append.quarantine
    scene.drop_row(table, scene.rows(table)[0])


def double_a_quarantined_record(scene: Scene) -> None:
    table = scene.upsert.quarantine
    scene.add_row(table, scene.rows(table)[0])


def edit_the_offsets_table(scene: Scene) -> None:
    row = _offsets_row(scene)
    table = scene.evidence.offsets
    scene.change_row(table, row, lambda each: each.update(until_offset=each["until_offset"] + 1))


def lose_a_row_of_the_offsets_table(scene: Scene) -> None:
    scene.drop_row(scene.evidence.offsets, _offsets_row(scene))


def double_a_row_of_the_offsets_table(scene: Scene) -> None:
    scene.add_row(scene.evidence.offsets, _offsets_row(scene))


def _offsets_row(scene: Scene) -> Row:
    # Rows of all pipelines lie in files whose order differs from run to run.
    judged = {each.name for each in scene.evidence.pipelines}
    rows = (each for each in scene.rows(scene.evidence.offsets) if each["pipeline"] in judged)
    return sorted(rows, key=lambda each: (each["pipeline"], each["sequence"]))[2]
