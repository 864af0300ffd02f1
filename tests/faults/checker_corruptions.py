"""Corruptions of a good run, each with the classes of fault that the checker must find: no
other and no less. Plain data, for tests and for the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.checker import spoil_ledger as ledger
from tests.faults.checker import spoil_tables as tables
from tests.faults.checker.scene import Scene
from tests.faults.checker.verdict import Fault


@dataclass(frozen=True)
class Corruption:
    """What is done to a good run, and which classes of fault that makes."""

    name: str
    spoil: Callable[[Scene], object]
    faults: frozenset[Fault]


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
    torn = {**lines[-1], "rows": lines[-1]["rows"] - 1}
    scene.write_lines(scene.evidence.snapshots, [*lines[:-1], torn])


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


def _corruption(name: str, spoil: Callable[[Scene], object], *faults: Fault) -> Corruption:
    return Corruption(name, spoil, frozenset(faults))


CORRUPTIONS = (
    # rows of an append
    _corruption("a row dropped", tables.drop_a_row, Fault.LOST, Fault.CONSERVATION),
    _corruption("a row twice", tables.double_a_row, Fault.DUPLICATE, Fault.CONSERVATION),
    _corruption("values of two rows swapped", tables.swap_two_rows, Fault.INCONSISTENT),
    _corruption("an aborted row", tables.insert_an_aborted_row, Fault.ABORTED_READ),
    _corruption("a row of no record", tables.insert_a_phantom, Fault.PHANTOM),
    _corruption(
        "a data file removed",
        tables.remove_a_data_file,
        Fault.MISSING_FILE,
        Fault.LOST,
        Fault.CONSERVATION,
    ),
    _corruption(
        "a data file cut short",
        tables.cut_a_data_file_short,
        Fault.UNREADABLE,
        Fault.LOST,
        Fault.CONSERVATION,
    ),
    # rows of an upsert
    _corruption("a key dropped", tables.drop_a_key, Fault.LOST),
    _corruption("a key twice", tables.double_a_key, Fault.DUPLICATE),
    _corruption("a value changed", tables.change_a_value, Fault.INCONSISTENT),
    _corruption("an older row of a key", tables.bring_back_an_older_row, Fault.ORDER),
    _corruption("a deleted key back again", tables.bring_back_a_deleted_key, Fault.FOLD),
    _corruption("an aborted key", tables.insert_an_aborted_row_into_the_upsert, Fault.ABORTED_READ),
    # the ledger
    _corruption(
        "an entry dropped",
        ledger.drop_an_entry,
        Fault.LEDGER,
        Fault.SEQUENCE,
        Fault.LOST_RANGE,
        Fault.PROJECTION,
    ),
    _corruption(
        "a commit removed",
        ledger.remove_a_commit,
        Fault.UNREADABLE,
        Fault.SEQUENCE,
        Fault.LOST_RANGE,
        Fault.LOST,
        Fault.PROJECTION,
    ),
    _corruption("ranges that overlap", ledger.overlap, Fault.DUP_RANGE, Fault.PROJECTION),
    _corruption("a gap between ranges", ledger.leave_a_gap, Fault.LOST_RANGE, Fault.PROJECTION),
    _corruption("a range again", ledger.rewind, Fault.REWIND, Fault.PROJECTION),
    _corruption("a number twice", ledger.repeat_a_sequence, Fault.SEQUENCE, Fault.PROJECTION),
    _corruption("a commit id twice", ledger.repeat_a_commit_id, Fault.LEDGER, Fault.PROJECTION),
    _corruption("a txn with another number", ledger.change_a_txn, Fault.LEDGER),
    _corruption("another topic id", ledger.change_a_topic_id, Fault.LEDGER, Fault.PROJECTION),
    _corruption(
        "counts that are not so", ledger.state_other_counts, Fault.CONSERVATION, Fault.PROJECTION
    ),
    _corruption(
        "rows deleted by others",
        ledger.delete_behind_the_ledger,
        Fault.LEDGER,
        Fault.LOST,
        Fault.CONSERVATION,
    ),
    _corruption(
        "rows deleted by others, and called accepted",
        ledger.claim_deletes,
        Fault.ERASURE,
        Fault.LEDGER,
        Fault.LOST,
        Fault.CONSERVATION,
        Fault.PROJECTION,
    ),
    _corruption(
        "undone, and gone on",
        ledger.go_on_after_a_restore,
        Fault.UNDONE,
        Fault.LOST_RANGE,
        Fault.LOST,
        Fault.PROJECTION,
    ),
    _corruption(
        "emptied, and gone on",
        ledger.go_on_after_a_truncate,
        Fault.UNDONE,
        Fault.LOST_RANGE,
        Fault.PROJECTION,
    ),
    _corruption(
        "replaced, and gone on",
        ledger.go_on_after_a_replace,
        Fault.UNDONE,
        Fault.LOST_RANGE,
        Fault.FOLD,
        Fault.PROJECTION,
    ),
    # side tables
    _corruption(
        "a quarantined record lost",
        tables.lose_a_quarantined_record,
        Fault.QUARANTINE,
        Fault.CONSERVATION,
    ),
    _corruption(
        "a quarantined record twice",
        tables.double_a_quarantined_record,
        Fault.QUARANTINE,
        Fault.CONSERVATION,
    ),
    _corruption(
        "a good record in quarantine",
        tables.quarantine_a_good_record,
        Fault.QUARANTINE,
        Fault.INCONSISTENT,
        Fault.CONSERVATION,
    ),
    _corruption(
        "a file of the quarantine cut short",
        tables.cut_a_quarantine_file_short,
        Fault.UNREADABLE,
        Fault.QUARANTINE,
        Fault.CONSERVATION,
    ),
    _corruption("the offsets table edited", tables.edit_the_offsets_table, Fault.PROJECTION),
    _corruption(
        "the offsets table lacks a row", tables.lose_a_row_of_the_offsets_table, Fault.PROJECTION
    ),
    _corruption(
        "the offsets table has a row twice",
        tables.double_a_row_of_the_offsets_table,
        Fault.PROJECTION,
    ),
    # what was noted on the way
    _corruption("a promise not kept", promise_a_write_that_is_not_there, Fault.UNSEEN),
    _corruption("an aborted write promised", promise_an_aborted_write, Fault.UNSEEN),
    _corruption("a refused write is there", refuse_a_write_that_is_there, Fault.ABORTED_READ),
    _corruption("a torn snapshot", tear_a_snapshot, Fault.TORN),
    _corruption("a snapshot older than the last", turn_back_a_reader, Fault.TORN),
    _corruption("a secret in a text", tell_a_secret, Fault.SECRET),
    _corruption("a secret in a table's log", tell_a_secret_in_the_log, Fault.SECRET),
)
