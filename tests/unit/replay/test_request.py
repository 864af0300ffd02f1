"""What ``replay`` is asked for: text to ranges, as tables."""

from __future__ import annotations

import pytest

from rivermouth.errors import ConfigError, ReplayRefused
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.replay.ranges import FirstOffsets
from rivermouth.replay.request import asked_ranges, read_bound, times_of
from tests.builders import place, position, span

pytestmark = pytest.mark.unit

AT = "2026-11-01T06:00:00Z"
READ = position(20, 9)
EARLIEST = {place(): 5, place(1): 0}
YOUNG: FirstOffsets = {place(): None, place(1): 7}


@pytest.mark.parametrize(
    ("begin", "end", "begins", "ends", "found"),
    [
        ("earliest", "", {}, {}, (span(5, 20), span(0, 9, 1))),
        ("t:0:7", "", {}, {}, (span(7, 20),)),
        ("t:0:7, t:1:9", "", {}, {}, (span(7, 20), span(9, 9, 1))),
        ('{"t": {"0": 7}}', '{"t": {"0": 9, "1": 3}}', {}, {}, (span(7, 9),)),
        ('{"t": "earliest"}', "t:1:3", {}, {}, (span(5, 20), span(0, 3, 1))),
        ("t:0:2", "", {}, {}, (span(2, 20),)),
        (AT, "", YOUNG, {}, (span(20, 20), span(7, 9, 1))),
        (AT, "", {place(): 3, place(1): 50}, {}, (span(5, 20), span(9, 9, 1))),
        (AT, AT, {place(): 6, place(1): 2}, {place(): 8, place(1): None},
         (span(6, 8), span(2, 9, 1))),
        ("earliest", AT, {}, {place(): 2, place(1): 4}, (span(5, 5), span(0, 4, 1))),
        ("t:0:7", "latest", {}, {}, (span(7, 20),)),
    ],
)  # fmt: skip
def test_ranges_are_those_of_the_partitions_that_are_named_up_to_the_position(
    begin: str, end: str, begins: FirstOffsets, ends: FirstOffsets, found: tuple[OffsetRange, ...]
) -> None:
    last = read_bound("--to", end) if end else None
    assert asked_ranges(read_bound("--from", begin), last, READ, EARLIEST, begins, ends) == found


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("t:0:21", "", "t-0 at 21, read up to 20"),
        ("t:0:1", "t:1:10", "t-1 at 10, read up to 9"),
        ("t:5:0", "", "t-5"),
        ("u:0:0", "", "u-0"),
        ('{"u": "earliest"}', "", "u"),
        ("t:0:9", "t:0:8", "t-0 from 9 to 8"),
    ],
)
def test_what_the_pipeline_has_not_read_is_refused(begin: str, end: str, said: str) -> None:
    last = read_bound("--to", end) if end else None
    with pytest.raises(ReplayRefused) as refused:
        asked_ranges(read_bound("--from", begin), last, READ, EARLIEST, {}, {})
    assert said in refused.value.found


@pytest.mark.parametrize(
    "text", ["", "x", "t:0", "t:x:1", "t:0:-1", "t:0:1,t:0:2", "t:0:1,earliest", "{", "2026-11-01"]
)
def test_what_is_no_offset_and_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--from"):
        read_bound("--from", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t:0:1,u:0:1,t:00:2", "it names the partition t-0 again"),
        ('{"t": {"0": 1, "1": 2, "0": 3}}', 't.0 names the partition "0" again'),
        ('{"t": {"1": 1, "01": 2}}', 't.01 names the partition "01" again'),
        ('{"t": "latest", "t": {"0": 3}}', 't names the topic "t" again'),
        ("{}", "it names no topic — write earliest, a time"),
        (" { } ", "it names no topic — write earliest, a time"),
        ('{"t": {"0": 1}, "u": {}}', "it names no partition of u — write earliest, a time"),
    ],
)
@pytest.mark.parametrize("option", ["--from", "--to"])
def test_what_names_something_twice_or_nothing_is_refused(
    option: str, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_bound(option, text)
    assert str(refused.value).startswith(f"{option} {text}: {said}")


def test_times_are_asked_of_the_partitions_that_are_read() -> None:
    assert {*times_of(read_bound("--from", AT), READ)} == {place(), place(1)}
    assert times_of(read_bound("--from", "t:0:1"), READ) == {}
