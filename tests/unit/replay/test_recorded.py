"""The recorded ranges of a pipeline: which entries are in effect, and from where on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rivermouth.config import Catalog, Pipeline
from rivermouth.errors import Halt, RangesRefused
from rivermouth.replay.ranges import EntryBound, ranges, recorded_in
from tests.builders import CLUSTER, PIPELINE, TOPICS, TableLog, entry_after, span
from tests.doubles import Driver, WatchedLog, World
from tests.memory import MemoryLog, MemoryTable
from tests.unit.verification.doubles import configured

pytestmark = pytest.mark.unit


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return configured(tmp_path).pipelines["p"].model_copy(update={"name": PIPELINE})


def at(version: int) -> datetime:
    """The time of a commit; that of a ``TableLog`` comes every second."""
    return datetime.fromtimestamp(version, timezone.utc)


def wrote(number: int) -> TableLog:
    """A table whose entry n, at version n, covers [n - 1, n)."""
    log = TableLog()
    for n in range(number):
        log.wrote(span(n, n + 1))
    return log


def log_of(table: TableLog, first_version: int = 0) -> MemoryLog:
    return MemoryLog(MemoryTable(commits=table.records, first_version=first_version))


CASES: dict[str, tuple[Callable[[], TableLog], EntryBound, EntryBound, list[int]]] = {
    "all": (lambda: wrote(4), None, None, [1, 2, 3, 4]),
    "from an entry on": (lambda: wrote(4), 3, None, [3, 4]),
    "up to before an entry": (lambda: wrote(4), None, 3, [1, 2]),
    "half-open": (lambda: wrote(4), 2, 4, [2, 3]),
    "empty": (lambda: wrote(4), 2, 2, []),
    "from the next one on": (lambda: wrote(4), 5, None, []),
    "below the first": (lambda: wrote(4), 0, 2, [1]),
    "from the time of a commit on": (lambda: wrote(4), at(3), None, [3, 4]),
    "up to before the time of a commit": (lambda: wrote(4), None, at(3), [1, 2]),
    "a moment after a commit": (lambda: wrote(4), at(3) + timedelta(milliseconds=1), None, [4]),
    "an entry and a time": (lambda: wrote(4), 2, at(4), [2, 3]),
    "before the first run": (TableLog, None, None, []),
    "rolled back": (lambda: wrote(4).restored(2), None, None, [1, 2]),
    "rolled back, from a later entry on": (lambda: wrote(4).restored(2), 3, None, []),
    "rolled back, from an earlier entry on": (lambda: wrote(4).restored(2), 2, None, [2]),
    "emptied": (lambda: wrote(4).did("TRUNCATE"), None, None, []),
    "optimized": (lambda: wrote(2).did("OPTIMIZE"), 2, None, [2]),
}


@pytest.mark.parametrize(("table", "since", "until", "found"), CASES.values(), ids=CASES)
def test_the_entries_in_effect_between_two_bounds(
    table: Callable[[], TableLog],
    since: EntryBound,
    until: EntryBound,
    found: list[int],
    pipeline: Pipeline,
) -> None:
    entries = recorded_in(log_of(table()), pipeline, since, until)
    assert [each.sequence for each in entries] == found


def test_an_entry_tells_its_commit_its_time_and_what_was_read_apart_from_what_was_lost(
    pipeline: Pipeline,
) -> None:
    table = TableLog()
    entry = entry_after(None, span(0, 3), span(4, 7, 1))
    entry = replace(entry, lost=(span(0, 3),))
    log = MemoryTable(commits=[*table.records])
    log.commit(entry)
    [found] = recorded_in(MemoryLog(log), pipeline)
    assert (found.sequence, found.commit) == (1, "orders-commit-1")
    assert found.committed_at == datetime.fromtimestamp(0.001, timezone.utc)
    assert (found.ranges, found.lost) == ((span(4, 7, 1),), (span(0, 3),))
    assert (found.cluster, found.topics) == (CLUSTER, TOPICS)


def test_after_an_accepted_restore_those_are_in_effect_that_the_table_rests_on(
    pipeline: Pipeline,
) -> None:
    world = World(ends={span(0, 1).topic_partition: 4})
    driver = Driver(world).open()
    driver.batch()
    before = len(world.commits) - 1
    world.ends[span(0, 1).topic_partition] = 8
    driver.batch()
    rolled_back = world.newest.sequence
    world.restore(before)
    Driver(world).ingest.resume("restore")
    Driver(world).open().batch()

    found = recorded_in(MemoryLog(world.log), pipeline)

    assert rolled_back not in [each.sequence for each in found]
    read = [one for each in found for one in each.ranges if one.span]
    assert read == [span(0, 4), span(4, 8)]
    for since in range(1, found[-1].sequence + 2):
        part = tuple(each for each in found if each.sequence >= since)
        assert recorded_in(MemoryLog(world.log), pipeline, since) == part


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (None, [3, 4]),
        (3, [3, 4]),
        (4, [4]),
        (at(3) + timedelta(milliseconds=1), [4]),
        (2, "RM704"),
        (1, "RM704"),
        (at(3), "RM704"),
    ],
)
def test_what_log_clean_up_took_is_never_left_out_silently(
    since: EntryBound, found: list[int] | str, pipeline: Pipeline
) -> None:
    log = log_of(wrote(4), first_version=3)
    if isinstance(found, list):
        assert [each.sequence for each in recorded_in(log, pipeline, since)] == found
        return
    with pytest.raises(RangesRefused, match="log clean-up took entries") as refused:
        recorded_in(log, pipeline, since)
    assert (refused.value.code, "entry 3" in refused.value.found) == (found, True)


def test_where_clean_up_took_every_entry_a_bound_is_refused(pipeline: Pipeline) -> None:
    log = log_of(wrote(2).did("OPTIMIZE"), first_version=3)
    assert recorded_in(log, pipeline) == ()
    with pytest.raises(RangesRefused, match="no entry as the first"):
        recorded_in(log, pipeline, 1)


def test_by_a_sequence_the_log_is_read_back_no_further_than_needed(pipeline: Pipeline) -> None:
    world = World(ends={span(0, 1).topic_partition: 1})
    driver = Driver(world).open()
    for end in range(1, 9):
        world.ends[span(0, 1).topic_partition] = end
        driver.batch()
    log = WatchedLog(world)
    newest = world.commits[-1].version
    [found] = recorded_in(log, pipeline, world.newest.sequence)
    assert found.ranges == (span(7, 8),)
    assert log.read == {newest - 1, newest}


def with_a_hole() -> TableLog:
    """A log from which somebody took a commit."""
    log = wrote(3)
    del log.records[2]
    return log


@pytest.mark.parametrize(
    ("table", "code"),
    [(lambda: wrote(3).restored("a time"), "RM411"), (with_a_hole, "RM410")],
    ids=["restored to a point in time", "a commit is missing"],
)
def test_where_nobody_can_tell_what_is_in_effect_nothing_is_given(
    table: Callable[[], TableLog], code: str, pipeline: Pipeline
) -> None:
    with pytest.raises(Halt) as caught:
        recorded_in(log_of(table()), pipeline)
    assert caught.value.code == code


@pytest.mark.parametrize(("since", "until"), [(3, 2), (at(3), at(2))])
def test_bounds_in_the_wrong_order_are_refused(
    tmp_path: Path, since: EntryBound, until: EntryBound
) -> None:
    with pytest.raises(RangesRefused, match="since comes after until"):
        ranges(configured(tmp_path), "p", since, until)


def test_a_bound_without_a_zone_is_refused_and_so_is_a_catalog_without_spark(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path)
    assert ranges(config, "p") == ()
    with pytest.raises(RangesRefused, match="without a zone"):
        ranges(config, "p", datetime(2026, 11, 23))
    in_a_catalog = config.model_copy(update={"warehouse": Catalog(catalog="main")})
    with pytest.raises(RangesRefused, match=r"spark=spark"):
        ranges(in_a_catalog, "p")
