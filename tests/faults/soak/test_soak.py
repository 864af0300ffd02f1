"""The parts of the soak without a broker: schedule, records, verdict, picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from rivermouth.errors import KafkaUnreachable, TableUndone
from rivermouth.run.text import failure
from rivermouth.testing import Record
from rivermouth.verification.ledger.entry import Commit
from tests.builders import TableLog, replayed, span
from tests.faults.soak.feed import Feed
from tests.faults.soak.fleet import Fleet
from tests.faults.soak.judging import (
    TORN,
    UNDONE,
    asked_for,
    differing,
    failures,
    grown,
    unexpected,
    wound_back,
)
from tests.faults.soak.memory import Sample, growth, used_mb
from tests.faults.soak.picture import picture
from tests.faults.soak.schedule import Happening, schedule
from tests.threads import repeating
from tests.unit.verification.doubles import CREATE, MemoryCommits, commit
from tests.waiting import wait_for

pytestmark = pytest.mark.unit


def test_all_that_ends_the_driver_happens_in_the_first_quarter() -> None:
    events = schedule(60, 40, seed=7)
    assert {each.what for each in events} == {*Happening}
    ending = {Happening.KILL, Happening.RESTORE}
    assert all(each.at_s < 900 for each in events if each.what in ending)
    assert [each.at_s for each in events] == sorted(each.at_s for each in events)
    restarts = [each.at_s for each in events if each.what is Happening.RESTART_BROKER]
    assert restarts == [600, 1200, 1800, 2400, 3000], "every ten minutes"
    assert events == schedule(60, 40, seed=7) != schedule(60, 40, seed=8)


def test_growth_compares_the_last_quarter_with_the_one_before() -> None:
    flat = [Sample(at, 100, 900) for at in range(0, 1000, 5)]
    assert growth(flat, 1000) == 1.0
    rising = [Sample(at, 100, at * 2) for at in range(0, 1000, 5)]
    assert growth(rising, 1000) > 1.3


def test_what_the_heap_holds_is_read_from_the_words_of_the_collector() -> None:
    said = """4711:
 PSYoungGen      total 611840K, used 10240K [0x00000000d5580000, 0x0000000100000000)
  eden space 524800K, 2% used [0x00000000d5580000,0x00000000d5f80000,0x00000000f5600000)
 ParOldGen       total 1398272K, used 204800K [0x0000000080000000, 0x00000000d5580000)
  object space 1398272K, 14% used [0x0000000080000000,0x000000008c800000,0x00000000d5580000)
 Metaspace       used 150000K, committed 151000K, reserved 1179648K
"""
    assert used_mb(said) == 210.0


def test_the_picture_has_a_line_for_every_event_and_a_name_for_every_colour() -> None:
    events = schedule(1, 4, seed=1)
    drawn = picture([Sample(5, 100, 500), Sample(60, 120, 600)], events, 60)
    assert drawn.count("stroke-dasharray") == len(events)
    assert all(each.value in drawn for each in Happening)
    assert drawn.count("<polygon") == 2


class Basin:
    """A fleet without a broker."""

    names: tuple[str, ...] = ("p00",)

    def __init__(self) -> None:
        self.partitions = {"p00": 2}
        self.lake = self

    def upserts(self, name: str) -> bool:
        return False

    def produce(self, topic: str, records: Iterable[Record]) -> int:
        return len([*records])


def test_records_go_to_every_partition_that_kafka_has_confirmed() -> None:
    basin = Basin()
    feed = Feed(cast(Any, basin), seed=1)
    assert {feed.record("p00")[2] for _ in range(100)} == {0, 1}
    basin.partitions["p00"] = 4
    assert {feed.record("p00")[2] for _ in range(100)} == {0, 1, 2, 3}


def test_a_feed_counts_what_was_acknowledged_and_says_why_it_ended_early() -> None:
    feed, basin = Feed(cast(Any, Basin()), seed=1), Basin()
    with repeating(0.001, feed.turn) as faults:
        wait_for(lambda: feed.records["p00"] > 0)
    assert faults == []
    basin.names = ()
    with repeating(0.001, Feed(cast(Any, basin), seed=1).turn) as faults:
        wait_for(lambda: bool(faults))
    assert [type(each) for each in faults] == [IndexError]


def test_pipelines_that_gave_up_are_told_from_the_words_of_the_driver() -> None:
    undone = failure("p01", TableUndone("bronze.p01: version 7 undid commits of this pipeline"))
    gone = failure("p02", KafkaUnreachable("no broker answers", found="a timeout"), retries=3)
    tail = "FAILED: 2 of 40 pipelines, exit code 5"
    said = "\n".join(["p03: tried again in 0.8 s: RM301 k: no", undone, gone, undone, tail, ""])
    assert failures(said) == [("p01", "RM411"), ("p02", "RM301")]
    assert unexpected(said, ("p01", UNDONE)) == ["p02 gave up with RM301"]
    assert unexpected(undone, ("p02", UNDONE)) == ["p01 gave up with RM411"]


def test_a_pipeline_whose_batch_was_torn_asks_for_a_version() -> None:
    log = TableLog("p02").wrote(span(0, 5)).wrote(span(5, 8)).restored(1).wrote(span(8, 9))
    [torn] = replayed(log.records, "p02").faults
    said = failure("p01", TableUndone("undone")) + "\n" + failure("p02", torn) + "\nOK\n"
    assert torn.code == TORN
    assert (asked_for(said, "p01"), asked_for(said, "p02")) == (None, 3)


def test_what_was_said_before_a_halt_was_accepted_is_heard_once(tmp_path: Path) -> None:
    fleet = Fleet.__new__(Fleet)
    fleet.log, fleet.given_up, fleet._heard = tmp_path / "driver.log", [], 0
    undone = failure("p01", TableUndone("undone")) + "\n"
    fleet.log.write_text(undone, encoding="utf-8")
    fleet.listen(("p01", UNDONE))
    fleet.listen()
    assert fleet.given_up == [], "what was heard is not heard again"
    fleet.log.write_text(undone * 2, encoding="utf-8")
    fleet.listen()
    assert fleet.given_up == ["p01 gave up with RM411"]


def test_records_that_were_fed_and_not_read_again_are_a_violation() -> None:
    assert differing({"p00": 5, "p01": 3}, {"p00": 5, "p01": 3}) == []
    differences = differing({"p00": 5, "p01": 3}, {"p00": 4, "p02": 1})
    assert [each.partition(":")[0] for each in differences] == ["p00", "p01", "p02"]
    assert differences[0] == "p00: 5 records were fed, verify read 4"


@pytest.mark.parametrize(("growth_of", "violations"), [(0.9, 0), (1.05, 0), (1.051, 1)])
def test_memory_that_is_not_flat_is_a_violation(growth_of: float, violations: int) -> None:
    assert len(grown(growth_of)) == violations


UPKEEP = Commit({"operation": "OPTIMIZE"}, {})
ENTRIES = [commit(each, each, each + 1) for each in range(1, 5)]


@pytest.mark.parametrize(
    ("log", "version"),
    [
        ([], None),
        ([CREATE, *ENTRIES[:2]], None),
        ([CREATE, *ENTRIES], 2),
        ([CREATE, *ENTRIES[:3], UPKEEP, UPKEEP, UPKEEP], 1),
        ([CREATE, *ENTRIES[:2], UPKEEP, ENTRIES[2], UPKEEP, ENTRIES[3]], 2),
    ],
)
def test_a_restore_rolls_back_two_entries_whatever_lies_between(
    log: list[Commit], version: int | None
) -> None:
    assert wound_back(MemoryCommits(log), "p") == version
