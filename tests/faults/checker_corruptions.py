"""Corruptions of a good run, each with the classes of fault that the checker must find: no
other and no less. Plain data, for tests and for the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.faults.checker import spoil_ledger as ledger
from tests.faults.checker import spoil_tables as tables
from tests.faults.checker.scene import Scene
from tests.faults.checker.verdict import Fault as F


def promise_a_write_that_is_not_there(scene: Scene) -> None:
    lines = scene.lines(scene.evidence.history)
    ok = next(each for each in reversed(lines) if each["phase"] == "ok")
    beyond = {**ok, "id": tables.FAR, "offset": tables.FAR}
    scene.write_lines(scene.evidence.history, [*lines, beyond])


def promise_an_aborted_write(scene: Scene) -> None:
    lines = scene.lines(scene.evidence.history)
    fail = next(each for each in lines if each["phase"] == "fail")
    lines[lines.index(fail)] = {**fail, "phase": "ok"}
    scene.write_lines(scene.evidence.history, lines)


def refuse_a_write_that_is_there(scene: Scene) -> None:
    lines = scene.lines(scene.evidence.history)
    ok = next(each for each in reversed(lines) if each["phase"] == "ok")
    lines[lines.index(ok)] = {**ok, "phase": "fail"}
    scene.write_lines(scene.evidence.history, lines)


def tear_a_snapshot(scene: Scene) -> None:
    lines = scene.lines(scene.evidence.snapshots)
    # The reader has seen other tables, too, and which of them last differs from run to run.
    tables = {f"{e.table.parent.name}.{e.table.name}" for e in scene.evidence.pipelines}
    last = max(at for at, each in enumerate(lines) if each["table"] in tables)
    lines[last] = {**lines[last], "rows": lines[last]["rows"] - 1}
    scene.write_lines(scene.evidence.snapshots, lines)


def turn_back_a_reader(scene: Scene) -> None:
    lines = scene.lines(scene.evidence.snapshots)
    scene.write_lines(scene.evidence.snapshots, [*lines, *lines])


def tell_a_secret(scene: Scene) -> None:
    [text] = scene.evidence.texts
    with text.open("a", encoding="utf-8") as file:
        file.write(f"connecting with {scene.evidence.secrets[0]}\n")


def tell_a_secret_in_the_log(scene: Scene) -> None:
    info = {"operation": "SET TBLPROPERTIES", "note": scene.evidence.secrets[0]}
    scene.add_commit(scene.upsert.table, {"commitInfo": info})


CORRUPTIONS: Mapping[str, tuple[Callable[[Scene], object], set[F]]] = {
    # rows of an append
    "a row dropped": (tables.drop_a_row, {F.LOST, F.CONSERVATION}),
    "a row twice": (tables.double_a_row, {F.DUPLICATE, F.CONSERVATION}),
    "values of two rows swapped": (tables.swap_two_rows, {F.INCONSISTENT}),
    "an aborted row": (tables.insert_an_aborted_row, {F.ABORTED_READ}),
    "a row of no record": (tables.insert_a_phantom, {F.PHANTOM}),
    "a data file removed": (tables.remove_a_data_file, {F.MISSING_FILE, F.LOST, F.CONSERVATION}),
    "a data file cut short": (tables.cut_a_data_file_short, {F.UNREADABLE, F.LOST, F.CONSERVATION}),
    # rows of an upsert
    "a key dropped": (tables.drop_a_key, {F.LOST}),
    "a key twice": (tables.double_a_key, {F.DUPLICATE}),
    "a value changed": (tables.change_a_value, {F.INCONSISTENT}),
    "an older row of a key": (tables.bring_back_an_older_row, {F.ORDER}),
    "a deleted key back again": (tables.bring_back_a_deleted_key, {F.FOLD}),
    "an aborted key": (tables.insert_an_aborted_row_into_the_upsert, {F.ABORTED_READ}),
    # the ledger
    "an entry dropped": (ledger.drop_an_entry, {F.LEDGER, F.SEQUENCE, F.LOST_RANGE, F.PROJECTION}),
    "a commit removed": (
        ledger.remove_a_commit,
        {F.UNREADABLE, F.SEQUENCE, F.LOST_RANGE, F.LOST, F.PROJECTION},
    ),
    "ranges that overlap": (ledger.overlap, {F.DUP_RANGE, F.PROJECTION}),
    "a gap between ranges": (ledger.leave_a_gap, {F.LOST_RANGE, F.PROJECTION}),
    "a range again": (ledger.rewind, {F.REWIND, F.PROJECTION}),
    "a number twice": (ledger.repeat_a_sequence, {F.SEQUENCE, F.PROJECTION}),
    "a commit id twice": (ledger.repeat_a_commit_id, {F.LEDGER, F.PROJECTION}),
    "a txn with another number": (ledger.change_a_txn, {F.LEDGER}),
    "another topic id": (ledger.change_a_topic_id, {F.LEDGER, F.PROJECTION}),
    "counts that are not so": (ledger.state_other_counts, {F.CONSERVATION, F.PROJECTION}),
    "rows deleted by others": (ledger.delete_behind_the_ledger, {F.LEDGER, F.LOST, F.CONSERVATION}),
    "rows deleted by others, and called accepted": (
        ledger.claim_deletes,
        {F.ERASURE, F.LEDGER, F.LOST, F.CONSERVATION, F.PROJECTION},
    ),
    "undone, and gone on": (
        ledger.go_on_after_a_restore,
        {F.UNDONE, F.LOST_RANGE, F.LOST, F.PROJECTION},
    ),
    "emptied, and gone on": (ledger.go_on_after_a_truncate, {F.UNDONE, F.LOST_RANGE, F.PROJECTION}),
    "replaced, and gone on": (
        ledger.go_on_after_a_replace,
        {F.UNDONE, F.LOST_RANGE, F.FOLD, F.PROJECTION},
    ),
    # side tables
    "a quarantined record lost": (tables.lose_a_quarantined_record, {F.QUARANTINE, F.CONSERVATION}),
    "a quarantined record twice": (
        tables.double_a_quarantined_record,
        {F.QUARANTINE, F.CONSERVATION},
    ),
    "a good record in quarantine": (
        tables.quarantine_a_good_record,
        {F.QUARANTINE, F.INCONSISTENT, F.CONSERVATION},
    ),
    "a file of the quarantine cut short": (
        tables.cut_a_quarantine_file_short,
        {F.UNREADABLE, F.QUARANTINE, F.CONSERVATION},
    ),
    "the offsets table edited": (tables.edit_the_offsets_table, {F.PROJECTION}),
    "the offsets table lacks a row": (tables.lose_a_row_of_the_offsets_table, {F.PROJECTION}),
    "the offsets table has a row twice": (tables.double_a_row_of_the_offsets_table, {F.PROJECTION}),
    # what was noted on the way
    "a promise not kept": (promise_a_write_that_is_not_there, {F.UNSEEN}),
    "an aborted write promised": (promise_an_aborted_write, {F.UNSEEN}),
    "a refused write is there": (refuse_a_write_that_is_there, {F.ABORTED_READ}),
    "a torn snapshot": (tear_a_snapshot, {F.TORN}),
    "a snapshot older than the last": (turn_back_a_reader, {F.TORN}),
    "a secret in a text": (tell_a_secret, {F.SECRET}),
    "a secret in a table's log": (tell_a_secret_in_the_log, {F.SECRET}),
}
"""What is done to a good run, and which classes of fault that makes."""
