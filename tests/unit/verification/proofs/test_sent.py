"""What a topic holds of a pipeline that sends: lost, repeated, former and unreadable records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from rivermouth.config.formats import FORMATS
from rivermouth.verification.ledger.entry import LedgerChanges, LedgerEntry, Partition
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.proofs.sent import verify_sent
from rivermouth.verification.result import Kind, Unchecked
from rivermouth.verification.subject import Subject
from tests.kinds.kinds import PAIRS
from tests.unit.verification.doubles import (
    SCHEMA,
    STAMP_MS,
    ZERO,
    Expiring,
    MemorySource,
    configured,
    entry,
    found,
    left,
    message,
    problems,
    quarantined,
    span,
    stored,
    subject,
    value,
    workspace,
)

pytestmark = pytest.mark.unit

LEAST = {"kafka": "out", "delivery": "at-least-once"}
MOST = {"kafka": "out", "delivery": "at-most-once"}
FUNCTION = {"foreach_partition": "a:b", "delivery": "at-least-once"}
ANOTHER_TOPIC = LedgerChanges(("topic",), False, frozenset({"t"}), {ZERO: (3, 0)})


def sent(at: int, offset: int, content: bytes | None = None, topic: str = "out") -> Message:
    """A copy of the record ``offset``, at the offset ``at`` of the sink."""
    content = value(offset, offset) if content is None else content
    return Message(
        topic=topic,
        partition=0,
        offset=at,
        value=content,
        headers=[("rm-id", b"p/t/0/%d" % offset)],
        timestamp=(1, STAMP_MS),
    )


def copies(*offsets: int, topic: str = "out") -> list[Message]:
    return [sent(at, offset, topic=topic) for at, offset in enumerate(offsets)]


def records(*offsets: int) -> list[Message]:
    return [message(each, value(each, each)) for each in offsets]


def source(read: Sequence[Message], *sinks: Sequence[Message], **facts: Any) -> MemorySource:
    held: dict[Partition, Sequence[Message]] = {ZERO: read}
    held |= {(str(each[0].topic()), 0): each for each in sinks}
    topics = {"t": "id", "out": "1", "b": "2"}
    return MemorySource(held, **{"topics": topics, **facts})


def verified(
    folder: Path,
    kafka: MemorySource,
    *entries: LedgerEntry,
    undone: Sequence[LedgerEntry] = (),
    held: Sequence[Message] = (),
    bounds: Bounds | None = None,
    schema: pa.Schema = SCHEMA,
) -> Subject:
    asked = subject(configured(folder), kafka, *entries)
    recorded = (*undone, *entries)
    asked = replace(asked, ledger=replace(asked.ledger, recorded=recorded))
    rows = stored([], {ZERO: quarantined(*held)} if held else {}, schema)
    verify_sent(asked, rows, workspace(folder / "w", bounds))
    return asked


class OfAnother(Message):
    """A record of another program, with a header whose name is not UTF-8."""

    def headers(self) -> None:
        raise SystemError


def test_a_record_of_another_program_whose_headers_cannot_be_read_is_no_record_of_ours(
    tmp_path: Path,
) -> None:
    odd = OfAnother(topic="out", partition=0, offset=2, value=b"?", timestamp=(1, STAMP_MS))
    kafka = source(records(0, 1), [*copies(0, 1), odd])
    asked = verified(tmp_path, kafka, entry(1, span(0, 2), config=MOST))
    assert problems(asked) == ()
    assert left(asked) == {}


@pytest.mark.parametrize("window", [1, 3, 100])
def test_all_that_was_sent_is_there_again_or_lacks(tmp_path: Path, window: int) -> None:
    kafka = source(records(*range(8)), copies(0, 1, 2, 3, 3, 3, 4, 5, 6))
    bounds = Bounds(window=window)
    least = verified(tmp_path, kafka, entry(1, span(0, 8), config=LEAST), bounds=bounds)
    assert problems(least) == ("t-0@7: not in the sink",)
    assert least.findings.repeated == 2
    most = verified(tmp_path, kafka, entry(1, span(0, 8), config=MOST), bounds=bounds)
    assert found(most) == {Kind.DUPLICATED: 2}
    assert left(most) == {Unchecked.NOT_SENT: 1}


@pytest.mark.parametrize(
    "facts", [{"compacted": frozenset({"out"})}, {"unknown_policy": frozenset({"out"})}], ids=str
)
def test_a_record_that_lacks_is_missing_only_if_the_sink_lacks_no_other(
    tmp_path: Path, facts: Mapping[str, Any]
) -> None:
    sink = copies(0, 1, 2)
    facts = {**facts, "ends": {ZERO: 4, ("out", 0): 3}}
    whole = verified(tmp_path, source(records(*range(4)), sink, **facts), WITH_LEAST)
    assert problems(whole) == ("t-0@3: not in the sink",)
    thinned = verified(
        tmp_path, source(records(*range(4)), sink[:1] + sink[2:], **facts), WITH_LEAST
    )
    assert (problems(thinned), left(thinned)) == ((), {Unchecked.NOT_SENT: 2})


@pytest.mark.parametrize(
    "facts", [{"compacted": frozenset({"t"})}, {"unknown_policy": frozenset({"t"})}], ids=str
)
def test_what_was_sent_of_a_compacted_topic_is_unchecked_but_for_aborted_records(
    tmp_path: Path, facts: Mapping[str, Any]
) -> None:
    aborted = frozenset({(ZERO, 3)})
    kafka = source(records(0, 1), copies(0, 1, 2, 3), aborted=aborted, **facts)
    asked = verified(tmp_path, kafka, WITH_LEAST)
    assert problems(asked) == ("t-0@3: in the sink, but Kafka shows no such good record",)
    assert left(asked) == {Unchecked.COMPACTED: 1}


WITH_LEAST = entry(1, span(0, 4), config=LEAST)


def changed(first: int = 3) -> tuple[LedgerEntry, LedgerEntry]:
    """Three records of a topic, which was then created again, and three of the new one."""
    before = entry(1, span(0, 3), config=LEAST)
    after = entry(2, span(0, first), config=LEAST, changes=ANOTHER_TOPIC)
    return before, after


def test_a_lost_record_is_not_hidden_by_a_former_one_of_its_offset(tmp_path: Path) -> None:
    old = [sent(each, each, value(90, 90)) for each in range(3)]
    kafka = source(records(0, 1, 2), [*old, sent(3, 0), sent(4, 1)])
    asked = verified(tmp_path, kafka, *changed())
    assert problems(asked) == ("t-0@2: not in the sink",)


def test_repeated_former_records_do_not_stand_for_a_lost_one(tmp_path: Path) -> None:
    old = [sent(each, 0, value(90, 90)) for each in range(3)]
    asked = verified(tmp_path, source(records(0), old), *changed(1))
    assert problems(asked) == ("t-0@0: not in the sink",)


TEXT = pa.schema([("id", pa.int64()), ("n", pa.string())])
TIME = pa.schema([("id", pa.timestamp("us", tz="UTC")), ("n", pa.string())])
DOUBLE = pa.schema([("id", pa.int64()), ("n", pa.float64())])
NO_NUMBER = b"id=0;n=NaN"
"""JSON has no such number: Spark writes a text for it."""


@pytest.fixture
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are of a format whose values JSON, or the checker, may not know."""
    unsure = replace(PAIRS, reader="tests.kinds.pairs_reader:unsure")
    monkeypatch.setitem(FORMATS.by_name, "json", unsure)


@pytest.mark.usefixtures("_pairs")
@pytest.mark.parametrize(
    ("read", "written", "schema"),
    [
        (NO_NUMBER, b'{"id": 0, "n": "NaN"}', DOUBLE),
        (b"id=10:00;n=x", b'{"id": "2026-01-01T10:00:00.000000Z", "n": "x"}', TIME),
    ],
)
def test_values_that_nobody_can_tell_are_counted(
    read: bytes, written: bytes, schema: pa.Schema, tmp_path: Path
) -> None:
    kafka = source([message(0, read)], [sent(0, 0, written)])
    asked = verified(tmp_path, kafka, entry(1, span(0, 1), config=LEAST), schema=schema)
    assert (found(asked), left(asked)) == ({}, {Unchecked.VALUES: 1})


@pytest.mark.usefixtures("_pairs")
def test_a_copy_that_cannot_be_told_from_a_former_one_is_counted(tmp_path: Path) -> None:
    sink = [sent(0, 0, b'{"id": 90, "n": 1.0}')]
    asked = verified(tmp_path, source([message(0, NO_NUMBER)], sink), *changed(1), schema=DOUBLE)
    assert (found(asked), left(asked)) == ({}, {Unchecked.FORMER: 1, Unchecked.VALUES: 1})


def test_values_tell_former_records_also_where_others_are_not_compared(tmp_path: Path) -> None:
    old = [sent(each, each, value(90, 90)) for each in range(3)]
    bounds = Bounds(window=3, values=1)
    asked = verified(tmp_path, source(records(0, 1, 2), old), *changed(), bounds=bounds)
    assert found(asked) == {Kind.MISSING: 3}


def test_former_ids_that_no_entry_covers_now_are_counted(tmp_path: Path) -> None:
    kafka = source(records(0), copies(0, 0, 1, 2))
    asked = verified(tmp_path, kafka, *changed(1))
    assert (found(asked), left(asked)) == ({}, {Unchecked.FORMER: 2})


def test_records_of_entries_that_were_rolled_back_are_former_ones(tmp_path: Path) -> None:
    undone = (entry(1, span(0, 3), config=MOST),)
    reset = entry(2, span(3, 5), config=MOST, accepts="reset")
    kafka = source(records(3, 4), copies(0, 1, 2, 3, 4))
    asked = verified(tmp_path, kafka, reset, undone=undone)
    assert (found(asked), left(asked)) == ({}, {Unchecked.FORMER: 3})
    again = entry(2, span(0, 3), config=MOST, accepts="reset")
    kafka = source(records(0, 1, 2), copies(0, 1, 2, 0, 1, 2))
    assert found(verified(tmp_path, kafka, again, undone=undone)) == {}


def test_each_record_belongs_in_the_sink_of_its_entry(tmp_path: Path) -> None:
    entries = (
        entry(1, span(0, 2), config=FUNCTION),
        entry(2, span(2, 4), config=LEAST),
        entry(3, span(4, 6), config={**LEAST, "kafka": "b"}),
    )
    kafka = source(records(*range(6)), copies(2, 3), copies(4, 5, topic="b"))
    asked = verified(tmp_path, kafka, *entries)
    assert (found(asked), left(asked)) == ({}, {Unchecked.SINK: 2})
    elsewhere = source(records(*range(6)), copies(2, 3, 4), copies(5, topic="b"))
    asked = verified(tmp_path, elsewhere, *entries)
    assert problems(asked) == ("t-0@4: not in the sink",)
    gone = source(records(*range(6)), copies(4, 5, topic="b"), topics={"t": "id", "b": "2"})
    assert left(verified(tmp_path, gone, *entries))[Unchecked.NOT_SENT] == 2


def test_a_good_record_that_nobody_can_decode_is_different(tmp_path: Path) -> None:
    kafka = source([message(0, b"?"), message(1, b"?")], copies(0))
    asked = verified(tmp_path, kafka, entry(1, span(0, 2), config=LEAST), held=[message(1, b"?")])
    assert found(asked) == {Kind.DIFFERENT: 1}
    assert "not in quarantine, but verify cannot decode it" in problems(asked)[0]


def test_other_and_unreadable_values_are_different(tmp_path: Path) -> None:
    sink = [sent(0, 0, value(0, 9)), sent(1, 1, b"?"), sent(2, 2)]
    asked = verified(tmp_path, source(records(0, 1, 2), sink), entry(1, span(0, 3), config=LEAST))
    assert problems(asked) == (
        "t-0@0: other values in the sink",
        "t-0@1: not readable in the sink",
    )


def expiring(kafka: MemorySource, **gone: int) -> Expiring:
    first = {(topic, 0): offset for topic, offset in gone.items()}
    return Expiring(kafka.records, topics=kafka.topics, gone=first, seen={ZERO})


def test_what_a_sink_loses_while_it_is_read_is_counted(tmp_path: Path) -> None:
    kafka = source(records(0, 1, 2), copies(0, 1, 2)[1:])
    asked = verified(tmp_path, expiring(kafka, out=1), entry(1, span(0, 3), config=LEAST))
    assert (found(asked), left(asked)) == ({}, {Unchecked.NOT_SENT: 1})


def test_what_the_source_loses_while_it_is_read_is_no_finding(tmp_path: Path) -> None:
    kafka = source(records(2), copies(0, 1, 2))
    one = entry(1, span(0, 3), config=LEAST)
    assert found(verified(tmp_path, kafka, one)) == {Kind.UNEXPECTED: 2}
    assert found(verified(tmp_path, expiring(kafka, t=1), one)) == {Kind.UNEXPECTED: 1}


ROUTED = {"kafka": ["b", "out"], "topic_column": "n", "delivery": "at-least-once"}


def named(offset: int, topic: object) -> bytes:
    return json.dumps({"id": offset, "n": topic}).encode()


def routed(*topics: object) -> list[Message]:
    """Records that name their topics."""
    return [message(offset, named(offset, topic)) for offset, topic in enumerate(topics)]


def copied(topic: str, *offsets: int) -> list[Message]:
    """What a topic has of them."""
    return [sent(at, each, named(each, topic), topic) for at, each in enumerate(offsets)]


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(window=2), Bounds(window=3, values=1)])
def test_each_record_belongs_in_the_topic_that_it_names(tmp_path: Path, bounds: Bounds) -> None:
    read = routed("out", "b", "b", "out", "b", "out")

    def asked(out: Sequence[Message], b: Sequence[Message], **facts: Any) -> Subject:
        one, two = (entry(1 + n, span(3 * n, 3 * n + 3), config=ROUTED) for n in range(2))
        kafka = source(read, out, b, **facts)
        return verified(tmp_path, kafka, one, two, bounds=bounds, schema=TEXT)

    good = asked(copied("out", 0, 3, 5), copied("b", 1, 2, 4))
    assert (problems(good), good.findings.repeated) == ((), 0)
    again = asked(copied("out", 0, 3, 3, 5), copied("b", 1, 2, 4, 3))
    assert (problems(again), again.findings.repeated) == ((), 2)
    lost = asked(copied("out", 0, 3, 5), copied("b", 1, 4))
    assert problems(lost) == ("t-0@2: not in the sink",)
    wrong = asked(copied("out", 0, 3, 5, 1), copied("b", 2, 4))
    assert problems(wrong) == ("t-0@1: not in the sink",)
    gone = asked(copied("out", 0, 3, 5), copied("b", 2, 4), topics={"t": "id", "out": "1"})
    assert (found(gone), left(gone)[Unchecked.NOT_SENT]) == ({}, 1)


def test_a_good_record_names_a_topic_and_one_in_quarantine_names_none(tmp_path: Path) -> None:
    read = [*routed("out", None, "x", None, "x"), message(5, named(5, "b")), message(6, b"?")]
    one = entry(1, span(0, 7), config=ROUTED)
    kafka = source(read, copied("out", 0), copied("b", 5))

    asked = verified(tmp_path, kafka, one, held=read[3:], schema=TEXT)

    assert {*problems(asked)} == {
        "t-0@1: not in quarantine, but it names no topic",
        "t-0@2: not in quarantine, but it names another topic",
        "t-0@5: in quarantine, but the record can be decoded",
        "t-0@5: in the sink, but Kafka shows no such good record",
    }


def test_a_record_in_quarantine_may_name_no_partition(tmp_path: Path) -> None:
    numbers = enumerate((-1, 0, None))
    read = [message(offset, value(offset, number)) for offset, number in numbers]
    one = entry(1, span(0, 3), config={**LEAST, "partition_column": "n"})
    asked = verified(tmp_path, source(read), one, held=read)
    assert problems(asked) == (
        "t-0@1: in quarantine, but the record can be decoded",
        "t-0@2: in quarantine, but the record can be decoded",
    )


@pytest.mark.usefixtures("_pairs")
@pytest.mark.parametrize(
    ("topics", "held", "expected"),
    [
        ({"t": "id", "b": "1", "out": "2"}, copied("out", 0), ({}, {Unchecked.VALUES: 1})),
        ({"t": "id", "b": "1", "out": "2"}, [], ({Kind.MISSING: 1}, {})),
        ({"t": "id", "b": "1"}, [], ({}, {Unchecked.NOT_SENT: 1})),
    ],
)
def test_a_topic_that_nobody_can_tell_is_the_one_that_holds_the_record(
    tmp_path: Path, topics: dict[str, str], held: list[Message], expected: object
) -> None:
    read = [message(0, b"id=10:00;n=out")]
    kafka = source(read, *([held] if held else []), topics=topics)
    asked = verified(tmp_path, kafka, entry(1, span(0, 1), config=ROUTED), schema=TIME)
    assert (found(asked), left(asked)) == expected


# What own code made: ids are proved, and how many may have been left out


def made(out: int, until: int = 6, config: Mapping[str, Any] = LEAST) -> LedgerEntry:
    """An entry of so many records, of which own code left some out."""
    return entry(1, span(0, until), config=config, transform="shop:rows", left_out=out)


def test_values_are_not_compared_and_no_more_lack_than_were_left_out(tmp_path: Path) -> None:
    kafka = source(records(*range(6)), [*copies(0, 1, 3, 3), sent(4, 4, b"[1]")])
    right = verified(tmp_path, kafka, made(2))
    assert found(right) == {}
    assert right.findings.repeated == 1
    assert left(right) == {Unchecked.MADE: 4, Unchecked.LEFT_OUT: 2}
    lost = verified(tmp_path, kafka, made(1))
    assert found(lost) == {Kind.MISSING: 1}
    assert "entry 1: 2 records without a row, but 1 left out" in problems(lost)[0]
    all_due = verified(tmp_path, kafka, made(0))
    assert problems(all_due) == ("t-0@2: not in the sink", "t-0@5: not in the sink")


def test_at_most_once_nothing_may_be_there_twice_and_anything_may_lack(tmp_path: Path) -> None:
    kafka = source(records(*range(6)), copies(0, 1, 3, 3))
    asked = verified(tmp_path, kafka, made(2, config=MOST))
    assert found(asked) == {Kind.DUPLICATED: 1}
    assert left(asked) == {Unchecked.MADE: 3, Unchecked.NOT_SENT: 3}


def test_a_record_that_cannot_be_decoded_was_not_to_be_sent(tmp_path: Path) -> None:
    kafka = source([*records(0, 1), message(2, b"oops")], copies(0, 1, 2))
    asked = verified(tmp_path, kafka, made(0, until=3))
    assert found(asked) == {Kind.DIFFERENT: 1}
    assert "not in quarantine, but verify cannot decode it" in problems(asked)[0]


def test_own_code_names_the_topic_so_any_listed_one_will_do(tmp_path: Path) -> None:
    config = {**LEAST, "kafka": ["b", "out"], "topic_column": "to"}
    kafka = source(records(*range(4)), copies(0, 2), copies(1, topic="b"))
    assert found(verified(tmp_path, kafka, made(1, until=4, config=config))) == {}
    lost = verified(tmp_path, kafka, made(0, until=4, config=config))
    assert problems(lost) == ("t-0@3: not in the sink",)


def test_records_of_entries_without_own_code_are_compared_as_ever(tmp_path: Path) -> None:
    kafka = source(records(*range(8)), [*copies(0, 1, 2, 3, 4, 5, 6), sent(7, 7, b"[1]")])
    plain = entry(2, span(6, 8), config=LEAST)
    asked = verified(tmp_path, kafka, made(0), plain)
    assert problems(asked) == ("t-0@7: not readable in the sink",)
    assert left(asked) == {Unchecked.MADE: 6}


def test_what_a_function_got_of_own_code_only_the_function_knows(tmp_path: Path) -> None:
    asked = verified(tmp_path, source(records(*range(6))), made(2, config=FUNCTION))
    assert left(asked) == {Unchecked.SINK: 6}
