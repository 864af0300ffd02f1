"""Columns of times: what is read at once, what is doubtful; and never another time."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from rivermouth.formats.strict_json import columns
from rivermouth.formats.strict_json.columns import times_of
from rivermouth.formats.strict_json.scalars import Bad, days, micros
from tests.unit.formats.made_records import words

pytestmark = pytest.mark.unit
ZONED, LOCAL, DATE = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()
FEW, MANY = 100, 1_000
"""So many are read by a pattern, or at once where they are spelt alike."""


def texts(like: str, count: int = MANY) -> list[str | None]:
    """Times that are spelt like one, in which 01 stands for the month."""
    return [like.replace("-01-", f"-{1 + each % 12:02}-") for each in range(count)]


def read(given: list[str | None], kind: pa.DataType) -> list[object]:
    """What each text gives, "doubtful" for those that are. What is given is right."""
    # A slice: it begins amid the bytes of the whole.
    refined = times_of(pa.array(["x", *given, "x"])[1:-1], kind)
    refined.array.validate(full=True)
    found = refined.array.to_pylist()
    doubtful = refined.doubtful if refined.doubtful is not None else [False] * len(given)
    for text, value, doubt in zip(given, found, doubtful, strict=True):
        assert value is None if text is None or doubt else value == exactly(text, kind)
    return [each if not doubt else "doubtful" for each, doubt in zip(found, doubtful, strict=True)]


def exactly(text: str, kind: pa.DataType) -> object:
    if kind == DATE:
        return date.fromordinal(days(text) + date(1970, 1, 1).toordinal())
    value = pa.scalar(micros(text, zone=kind == ZONED, cut=False), pa.int64())
    return value.cast(kind).as_py()


ALIKE = [
    ("2026-01-28T10:00:00Z", ZONED),
    ("2026-01-28 23:59:59.123456Z", ZONED),
    ("1000-01-01T00:00:00.5+23:59", ZONED),
    ("2999-01-28T10:00:00-0130", ZONED),
    ("2026-01-28T10:00:00", ZONED),
    ("2026-01-28T10:00:00.123", LOCAL),
    ("2026-01-28", DATE),
]


@pytest.mark.parametrize("count", [1, FEW, MANY])
@pytest.mark.parametrize(("like", "kind"), ALIKE)
def test_usual_times_are_not_doubtful(like: str, kind: pa.DataType, count: int) -> None:
    assert "doubtful" not in read(texts(like, count), kind)


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(("like", "kind"), ALIKE)
def test_what_is_spelt_unusually_is_doubtful(like: str, kind: pa.DataType, count: int) -> None:
    others: list[str | None] = ["", "2026-01-28T10:00", f"x{like}", None]
    found = read([*others, *texts(like, count), *others], kind)
    assert found[:4] == found[-4:] == ["doubtful", "doubtful", "doubtful", None]
    assert "doubtful" not in found[4:-4]


NO_TIMES = [
    *words("""
    2026-02-30T10:00:00+00:00 2025-02-29T10:00:00+00:00 2026-04-31T10:00:00+00:00
    2026-00-28T10:00:00+00:00 2026-13-28T10:00:00+00:00 2026-20-28T10:00:00+00:00
    2026-01-00T10:00:00+00:00 2026-01-32T10:00:00+00:00 2026-01-40T10:00:00+00:00
    2026-01-28T24:00:00+00:00 2026-01-28T30:00:00+00:00 2026-01-28T10:60:00+00:00
    2026-01-28T10:00:60+00:00 2026-01-28T10:00:00+24:00 2026-01-28T10:00:00+99:00
    2026-01-28T10:00:00+00:60 2026-01-28T10:00:00/00:00 2026-01-28t10:00:00+00:00
    2026-01-28T10-00:00+00:00 2026/01-28T10:00:00+00:00 026-01-28T10:00:00.+00:00
    +026-01-28T10:00:00+00:00 0999-01-28T10:00:00+00:00 3000-01-28T10:00:00+00:00
"""),
    *(" 026-01-28T10:00:00+00:00", "\u066026-01-28T10:00:00+00:00"),
]


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("no_time", NO_TIMES)
def test_what_may_be_no_time_is_doubtful_among_others(no_time: str, count: int) -> None:
    """Some of them are times for the exact way; at once nobody reads them."""
    like = "2026-01-28T10:00:00+00:00"
    assert len(no_time.encode()) == len(like)
    found = read([*texts(like, count), no_time], ZONED)
    assert found[-1] == "doubtful"
    assert "doubtful" not in found[:-1]


def test_zones_ahead_and_behind_are_spelt_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_by_pattern", lambda *_: pytest.fail("by a pattern"))
    zones = (texts(f"2026-01-28T10:00:00{zone}") for zone in ("+02:00", "-05:00"))
    assert "doubtful" not in read(
        [each for both in zip(*zones, strict=True) for each in both], ZONED
    )


def test_what_is_spelt_otherwise_alone_is_looked_at_by_a_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def by_pattern(form: object, given: pa.StringArray, kind: pa.DataType) -> pa.Array:
        looked.append(len(given))
        return pa.nulls(len(given), kind)

    monkeypatch.setattr(columns, "_by_pattern", by_pattern)
    read([*texts("2026-01-28T10:00:00Z"), *["2026-01-28T10:00:00.5Z"] * 7], ZONED)
    assert looked == [7, 7]


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("year", [1200, 1804, 1896, 2000, 2024, 2096, 2400, 2996])
def test_leap_days_are_not_doubtful(year: int, count: int) -> None:
    """Otherwise a pipeline would be slow for one day in four years."""
    given = texts(f"{year}-02-29T10:00:00Z", count)
    assert {*read(given, ZONED)} == {datetime(year, 2, 29, 10, tzinfo=timezone.utc)}


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("year", [1000, 1100, 1900, 2023, 2025, 2026, 2100, 2998])
def test_a_day_that_was_in_no_leap_year_is_doubtful(year: int, count: int) -> None:
    good = texts(f"{year}-01-28T10:00:00Z", count)
    found = read([*good, f"{year}-02-29T10:00:00Z"], ZONED)
    assert found[-1] == "doubtful"
    assert "doubtful" not in found[:-1]


def test_times_of_two_forms_are_read() -> None:
    given = [*texts("2026-01-28T10:00:00Z"), *texts("2026-01-28T10:00:00"), *texts("2026-01-28")]
    found = read(given, ZONED)
    assert "doubtful" not in found[: 2 * MANY]
    assert {*found[2 * MANY :]} == {"doubtful"}


def test_the_first_texts_need_not_be_times() -> None:
    found = read([None, "", *texts("2026-01-28T10:00:00Z")], ZONED)
    assert found[:2] == [None, "doubtful"]
    assert "doubtful" not in found[2:]


def test_no_texts_give_no_times() -> None:
    assert read([], ZONED) == []
    assert read([None] * MANY, DATE) == [None] * MANY


def test_the_exact_way_refuses_what_is_no_time() -> None:
    """So that the comparison above is one."""
    with pytest.raises(Bad):
        exactly("2026-02-30T10:00:00Z", ZONED)
