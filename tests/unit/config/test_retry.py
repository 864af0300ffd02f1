"""How long something is tried again: what the file may say, and the pauses that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from rivermouth.config import Config, Retry, pauses

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]

PLAIN = Retry()


def seconds(total: float, first: float, longest: float) -> Retry:
    each = [timedelta(seconds=value) for value in (total, first, longest)]
    return Retry.model_construct(total=each[0], first=each[1], longest=each[2])


def above(lake: str, retry: str) -> str:
    return lake.replace("warehouse: lake", f"warehouse: lake\nretry: {retry}")


def test_what_is_left_out_has_the_documented_default(lake: str, loads: Loads) -> None:
    config = loads(lake)
    assert config.retry == config.pipelines["p"].retry == Retry()
    assert (PLAIN.total, PLAIN.first, PLAIN.longest) == (
        timedelta(minutes=10),
        timedelta(milliseconds=200),
        timedelta(seconds=60),
    )


def test_a_pipeline_has_that_of_the_file_or_its_own(lake: str, loads: Loads) -> None:
    text = above(lake, '{for: 5m, from: "${env:FIRST}", up_to: 30s}')
    (inherited,) = loads(text, {"FIRST": "1s"}).pipelines.values()
    assert inherited.retry == Retry(
        total=timedelta(minutes=5), first=timedelta(seconds=1), longest=timedelta(seconds=30)
    )
    (own,) = loads(f"{text}    retry: {{for: 2h}}\n", {"FIRST": "1s"}).pipelines.values()
    assert own.retry == Retry(total=timedelta(hours=2))


@pytest.mark.parametrize(
    "retry", ["{for: 0s}", "{for: 10s}", "{up_to: 100ms}", "{for: 1s, from: 1s, up_to: 1s}", "{}"]
)
def test_a_default_gives_way_to_what_the_file_says(retry: str, lake: str, loads: Loads) -> None:
    assert loads(above(lake, retry)).pipelines["p"].retry.total >= timedelta(0)


def wait(retry: Retry, *, taken: float = 0.0, random: float = 0.0) -> list[float]:
    """The pauses when each try takes ``taken`` seconds."""
    now = [1000.0]
    waited: list[float] = []
    for pause in pauses(retry, lambda: random, lambda: now[0]):
        waited.append(pause)
        now[0] += pause + taken
    return waited


@pytest.mark.parametrize(
    ("retry", "taken", "random", "expected"),
    [
        pytest.param(seconds(0, 0.25, 4), 0, 0, [], id="nothing is tried again"),
        pytest.param(seconds(8, 1, 2), 0, 0, [1, 2, 2, 2, 1], id="doubled up to the longest"),
        pytest.param(seconds(7, 1, 64), 0, 0, [1, 2, 4], id="the last ends with the time"),
        pytest.param(seconds(6, 1, 64), 0, 0, [1, 2, 3], id="the last is cut"),
        pytest.param(seconds(3, 1, 64), 0, 0.5, [0.75, 1.5, 0.75], id="a random part less"),
        pytest.param(seconds(8, 1, 64), 2, 0, [1, 2, 1], id="what tries take counts"),
        pytest.param(seconds(8, 1, 64), 9, 0, [1], id="a try longer than the time"),
        pytest.param(seconds(2, 8, 4), 0, 0, [2], id="a first pause above all"),
        pytest.param(seconds(6, 4, 2), 0, 0, [2, 2, 2], id="a first pause above the longest"),
    ],
)
def test_pauses(retry: Retry, taken: float, random: float, expected: list[float]) -> None:
    assert wait(retry, taken=taken, random=random) == expected


def test_time_counts_from_the_first_failure() -> None:
    now = [0.0]
    schedule = pauses(seconds(0.5, 1, 4), lambda: 0.0, lambda: now[0])
    now[0] = 100.0
    assert next(schedule) == 0.5


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999])
def test_the_defaults_wait_ten_minutes_in_all(random: float) -> None:
    waited = wait(PLAIN, random=random)
    assert sum(waited) == pytest.approx(600)
    assert waited[0] <= 0.2
    assert 30 < max(waited) <= 60


BROKEN = [
    ("{for: 1m, up_to: 2m}", ['4:25 RM107 retry.up_to is "2m", which is longer than for']),
    ("{up_to: 20m}", ['4:16 RM107 retry.up_to is "20m", which is longer than for']),
    ("{from: 2m}", ['4:15 RM107 retry.from is "2m", which is longer than up_to']),
    ("{from: 2s, up_to: 1s}", ['4:15 RM107 retry.from is "2s", which is longer than up_to']),
    ("{from: 0s}", ["4:15 RM107 retry.from must be longer than 0 — write for: 0s if"]),
    ("{up_to: 0ms}", ["4:16 RM107 retry.up_to must be longer than 0"]),
    ("{for: 25h}", ['4:14 RM107 retry.for is above 24 hours: "25h"']),
    ("{for: 600}", ["4:14 RM106 retry.for must be a duration, not 600 — write a number and ms"]),
    ("10m", ['4:8 RM106 retry must be a mapping, not "10m"']),
    ("{form: 1s}", ['4:9 RM104 unknown key "form" in retry — did you mean "for"?']),
    ("{upto: 1s}", ['4:9 RM104 unknown key "upto" in retry — did you mean "up_to"?']),
    (
        "{for: 1x, from: 2s, up_to: 1s}",
        ["4:14 RM107 retry.for must be a duration", "4:24 RM107 retry.from is"],
    ),
]


@pytest.mark.parametrize(("retry", "expected"), BROKEN)
def test_what_does_not_fit_is_told_once_at_its_place(
    retry: str, expected: list[str], lake: str, problems: Problems
) -> None:
    found = problems(above(lake, retry))
    assert len(found) == len(expected)
    for line, words in zip(found, expected, strict=True):
        assert line.startswith(f"lake.yml:{words}")


def test_a_pipeline_s_own_is_checked_at_its_place(lake: str, problems: Problems) -> None:
    (line,) = problems(f"{lake}    retry: {{from: 2m}}\n")
    assert line.startswith("lake.yml:9:19 RM107 pipelines.p.retry.from is")
