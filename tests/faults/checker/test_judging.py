"""What the checker holds for true: what a record becomes, and what the fold leaves."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.campaign.forms import FORMS
from tests.faults.campaign.producer import POISON
from tests.faults.checker.chain import judge
from tests.faults.checker.decode import Decoder, Kind
from tests.faults.checker.entry import Entry, Span
from tests.faults.checker.evidence import Watched
from tests.faults.checker.fold import Fold
from tests.faults.checker.ledger import Node, after
from tests.faults.checker.records import Records
from tests.faults.checker.verdict import Fault

pytestmark = pytest.mark.unit
ONE, TWO = ("t", 0), ("t", 1)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (b"1", b'{"id": 1, "text": "x", "more": [1]}', Kind.GOOD),
        (b"1", b'{"id": 1}', Kind.GOOD),
        (b"1", None, Kind.TOMBSTONE),
        (b"one", None, Kind.BAD),
        (None, None, Kind.BAD),
        (b"1", b"", Kind.BAD),
        (b"1", b"null", Kind.BAD),
        (b"1", b'[{"id": 1}]', Kind.BAD),
        (b"1", b'{"id": 1', Kind.BAD),
        (b"1", b'{"id": null}', Kind.BAD),
        (b"1", b'{"id": "1"}', Kind.BAD),
        (b"1", b'{"id": 1.0}', Kind.GOOD),
        (b"1", b'{"id": 10e-1}', Kind.GOOD),
        (b"1", b'{"id": 1.5}', Kind.BAD),
        (b"1", b'{"id": 1e999999999}', Kind.BAD),
        (b"1", b'{"id": 9223372036854775808}', Kind.BAD),
        (b"1", b'{"id": true}', Kind.BAD),
        (b"1", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b', "id": 1}', Kind.BAD),
        (b"1", b'{"id": 1, "a": ' + b"[" * 499 + b"]" * 499 + b"}", Kind.GOOD),
        (b"1", b'{"id": 1, "a": ' + b"[" * 500 + b"]" * 500 + b"}", Kind.BAD),
        (b"1", b'{"id": 1, "a": "' + b"[" * 501 + b'"}', Kind.GOOD),
        (b"1", b'{"id": 1, "a": ' + b"7" * 5000 + b"}", Kind.GOOD),
        (b"1", b'{"id": 1, "a": 1, "a": {"b": 1, "b": 2}}', Kind.GOOD),
        (b"1", b'{"id": 1, "text": "\\ud83d\\ude00"}', Kind.GOOD),
        (b"1", b'{"id": 1, "a": "\\ud83d"}', Kind.BAD),
        (b"1", b'{"id": 1} {"id": 2}', Kind.BAD),
        (b"1", b'{"id": 2, "id": 1}', Kind.BAD),
        (b"1", b'{"id": 1, "text": 5}', Kind.BAD),
        (b"1", b'{"id": 1, "text": "\xff"}', Kind.BAD),
        (b"1", b'{"id": 1, "more": NaN}', Kind.BAD),
    ],
)
def test_a_record_is_judged_on_its_bytes(key: bytes, value: bytes, kind: Kind) -> None:
    columns = (("id", "BIGINT"), ("text", "STRING"))
    pipeline = Watched("p", ("t",), Path(), Path(), columns, ("id",), (), "string")
    judged = Decoder(pipeline).judge(key, value)
    assert judged.kind == kind
    assert judged.keys == (None if kind == Kind.BAD else (1,))


ROW = {"k": 7, "seq": 300, "body": "é"}


@pytest.mark.parametrize("form", [each for each in FORMS if each != "debezium"])
def test_a_record_says_the_same_in_each_form(form: str) -> None:
    columns = (("k", "BIGINT"), ("seq", "BIGINT"), ("body", "STRING"))
    decoder = Decoder(Watched("p", ("t",), Path(), Path(), columns, ("k",), ("seq",), form=form))
    whole = FORMS[form].put(ROW)
    assert decoder.judge(None, whole) == (Kind.GOOD, (7, 300, "é"), (7,))
    for spoilt in (whole[:-1], b"", whole + b"\x80"):
        assert decoder.judge(None, spoilt).kind == Kind.BAD
    for poison in POISON:
        assert decoder.judge(None, poison).kind == Kind.BAD


@pytest.mark.parametrize(
    ("value", "judged"),
    [
        (FORMS["debezium"].put(ROW), (Kind.GOOD, (7, 300, "é"), (7,))),
        (b'{"op": "d", "before": {"k": 7}, "source": {"seq": 3}}', (Kind.GONE, (7, 3, None), (7,))),
        (None, (Kind.SKIPPED, None, None)),
        (b'{"op": "u", "after": null, "source": {"seq": 1}}', (Kind.BAD, None, None)),
        (b'{"op": "x", "after": {"k": 7}, "source": {"seq": 1}}', (Kind.BAD, None, None)),
        (b'{"k": 7, "seq": 1, "body": ""}', (Kind.BAD, None, None)),
    ],
)
def test_an_event_is_judged_by_what_it_says(value: bytes | None, judged: Any) -> None:
    columns = (("k", "BIGINT"), ("seq", "BIGINT"), ("body", "STRING"))
    watched = Watched("p", ("t",), Path(), Path(), columns, ("k",), ("seq",), form="debezium")
    assert Decoder(watched).judge(None, value) == judged


def test_an_event_that_deletes_is_ordered_as_rows_are() -> None:
    watched = Watched("p", ("t",), Path(), Path(), (("id", "BIGINT"),), ("id",))
    each = Records(ONE, watched, 0, thinned=False)
    each.offsets = np.arange(4, dtype=np.int64)
    each.kinds = np.array([Kind.GOOD, Kind.GONE, Kind.GONE, Kind.GOOD], np.uint8)
    each.keys, each.rows = np.full(4, 1, np.uint64), np.arange(4).astype(np.uint64)
    each.orders = [b"\x05", b"\x03", b"\x07", b"\x01"]
    node: Node | None = None
    rows = []
    for number in range(4):
        entry = Entry(
            "p", number, number, f"{number}", "c", {}, (Span(ONE, number, number + 1),), {}
        )
        node, fold = after(node, entry), Fold()
        fold.move_to(node, {ONE: each})
        rows.append(fold.rows.get(1))
    assert rows == [(ONE, 0), (ONE, 0), None, (ONE, 3)]


def test_a_fold_that_goes_back_and_forth_stands_where_a_straight_one_does() -> None:
    dice = random.Random(7)
    pipeline = Watched("p", ("t",), Path(), Path(), (("id", "BIGINT"),), ("id",))
    records: dict[tuple[str, int], Records] = {}
    for partition in range(2):
        each = records["t", partition] = Records(("t", partition), pipeline, 0, thinned=False)
        each.offsets = np.arange(60, dtype=np.int64)
        each.kinds = np.array(dice.choices([0, 0, 1, 2, 3], k=60), np.uint8)
        each.keys = np.array(dice.choices(range(9), k=60), np.uint64)
        each.rows = np.array(dice.choices(range(1 << 62), k=60), np.uint64)
        each.orders = [dice.choice([b"\0", b"\1a", b"\1b"]) for _ in range(60)]
    nodes: list[Node | None] = [None]
    for number in range(30):
        before = dice.choice(nodes)
        spans = tuple(Span(place, number, number + 9) for place in records)
        entry = Entry("p", number, number, f"{number}", "c", {}, spans, {})
        nodes.append(after(before, entry))
    wandering = Fold()
    for node in dice.choices(nodes, k=200):
        straight = Fold()
        straight.move_to(node, records)
        wandering.move_to(node, records)
        assert (wandering.rows, wandering.total) == (straight.rows, straight.total)


STOOD = Entry("p", 6, 3, "c3", "k", {"t": "id"}, (), {ONE: 10, TWO: 20})
"""The entry that the others here follow on."""


def spans(*listed: tuple[tuple[str, int], int, int]) -> dict[str, Any]:
    """Ranges, and the position that they lead to."""
    moved = {place: until for place, _, until in listed}
    return {"spans": tuple(map(Span._make, listed)), "position": {**STOOD.position, **moved}}


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        (spans((ONE, 10, 15), (TWO, 20, 20)), set()),
        (spans((("t", 2), 7, 9)), set()),
        (spans((ONE, 11, 15)), {Fault.LOST_RANGE}),
        (spans((ONE, 9, 15)), {Fault.DUP_RANGE}),
        (spans((ONE, 4, 9)), {Fault.REWIND}),
        ({**spans((ONE, 10, 15)), "position": STOOD.position}, {Fault.LEDGER}),
        ({"sequence": 5}, {Fault.SEQUENCE, Fault.LEDGER}),
        ({"commit": "c1"}, {Fault.LEDGER}),
        ({"cluster": "other"}, {Fault.LEDGER}),
        ({"topics": {}}, {Fault.LEDGER}),
        ({}, set()),
        ({**spans((ONE, 10, 15)), "lost": (Span(ONE, 10, 15),)}, set()),
        ({**spans((ONE, 10, 15)), "lost": (Span(ONE, 10, 16),)}, {Fault.LEDGER}),
        ({**spans((ONE, 10, 10)), "accepts": "restore"}, set()),
        ({**spans((ONE, 10, 12)), "accepts": "restore"}, {Fault.LEDGER, Fault.LOST_RANGE}),
        ({**spans((ONE, 14, 14)), "accepts": "restore"}, {Fault.LOST_RANGE}),
        ({**spans((ONE, 4, 4)), "accepts": "restore"}, {Fault.REWIND}),
        ({**spans((ONE, 0, 0), (TWO, 0, 0)), "accepts": "reset", "cluster": "other"}, set()),
    ],
)
def test_an_entry_follows_on_the_one_that_stands(
    changes: dict[str, Any], faults: set[Fault]
) -> None:
    entry = replace(STOOD, **{"version": 7, "sequence": 4, "commit": "c4", **changes})
    found = {each.fault for each in judge(entry, 4, STOOD, STOOD, {"c1", "c3"})}
    assert found == faults


def test_an_entry_over_an_undoing_needs_somebody_who_accepted_it() -> None:
    newest = replace(STOOD, sequence=4, commit="c4", position={ONE: 15, TWO: 20})
    entry = replace(newest, sequence=5, commit="c5")
    found = {each.fault for each in judge(entry, 5, newest, STOOD, set())}
    assert found == {Fault.UNDONE, Fault.LEDGER}, "its position is not where it stands"
    entry = replace(entry, position=STOOD.position, accepts="restore")
    assert [*judge(entry, 5, newest, STOOD, set())] == []
