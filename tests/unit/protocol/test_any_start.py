"""Any start on any topics: each partition starts at an offset that it has, or is named at once."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from rivermouth.errors import StartUnknown
from rivermouth.protocol.offsets import TopicPartition
from tests.builders import place
from tests.unit.protocol.start_cases import ABSENT, Case, Offsets, Said, drawn

pytestmark = pytest.mark.unit

UNNAMED, BEYOND, TOO_YOUNG, GONE = "is not named", "has the offsets", "has no record", "does not"


def by_start(case: Case, each: TopicPartition) -> bool:
    """Whether the start decides where a partition starts."""
    newest = case.newest
    if newest is None:
        return True
    begun = {it.topic for it in newest.position}
    if each.topic in begun:
        return each.topic in newest.assigned and newest.position.get(each) is None
    return not case.has_pattern or each.topic in case.said


def otherwise(case: Case, each: TopicPartition) -> int:
    """Where a partition starts for which the start does not count."""
    assert case.newest is not None
    stands = case.newest.position.get(each)
    if stands is not None:
        return stands
    came_later = each.topic not in {it.topic for it in case.newest.position}
    return case.cluster.logs[each].low if came_later else 0


def wanted(case: Case, each: TopicPartition) -> tuple[int, str]:
    """The offset at which the start lets a partition start; or the one to write instead, and why
    that is needed.
    """
    log = case.cluster.logs[each]
    at = case.said.get(each.topic, "earliest") if case.said else case.edge
    if isinstance(at, dict):
        at = at.get(each.partition, UNNAMED)
    if at == UNNAMED:
        return log.low, UNNAMED
    if at in ("earliest", -2):
        return log.low, ""
    if at in ("latest", -1):
        return log.high, ""
    if isinstance(at, int):
        return min(max(at, log.low), log.high), "" if log.low <= at <= log.high else BEYOND
    assert isinstance(at, datetime)
    found = log.first_from(at)
    fits = found is not None or case.missing == "latest" or log.low == log.high
    return min(log.high if found is None else found, log.high), "" if fits else TOO_YOUNG


def expected(case: Case) -> tuple[Offsets, dict[TopicPartition, str]]:
    """Where each partition starts, once what does not fit is mended; and why it does not fit."""
    decided = [each for each in case.reads() if by_start(case, each)]
    starts = {each: otherwise(case, each) for each in case.reads() if each not in decided}
    found = {each: wanted(case, each) for each in decided}
    why = {each: text for each, (_, text) in found.items() if text}
    for topic in {each.topic for each in decided}:
        said = case.said.get(topic)
        named = {place(number, topic) for number in said} if isinstance(said, dict) else set()
        why |= dict.fromkeys(named - {*case.reads()}, GONE)
    return starts | {each: offset for each, (offset, _) in found.items()}, dict(sorted(why.items()))


def check(case: Case, file: Path, seen: Counter[str], topics: str = "") -> None:
    """Each partition starts where it should; or it is named, and what to write lets all start."""
    pipeline, (starts, why) = case.load(file, topics=topics), expected(case)
    seen.update([*why.values()] or ["all fit"])
    if not why:
        assert case.starts(pipeline) == starts
        logs = case.cluster.logs
        assert all(
            logs[each].low <= at <= logs[each].high
            for each, at in starts.items()
            if by_start(case, each)
        )
        return
    with pytest.raises(StartUnknown) as halted:
        case.starts(pipeline)
    told = [each.split(" ", 1) for each in halted.value.found.split("; ")]
    assert [name for name, _ in told] == [str(each) for each in why]
    assert all(text.startswith(it) for (_, text), it in zip(told, why.values(), strict=True))
    form = r"Write start: ({.*})(, or on_missing_time: latest)?"
    written = re.fullmatch(form, halted.value.remedy)
    assert written is not None, halted.value.remedy
    mended = case.load(file, written[1], topics)
    assert case.starts(mended) == starts
    if ABSENT in case.said:
        before, after = pipeline.source.start, mended.source.start
        assert [after.of(ABSENT, n) for n in range(9)] == [before.of(ABSENT, n) for n in range(9)]
    assert bool(written[2]) is ({*why.values()} == {TOO_YOUNG})
    if written[2]:
        seen["or latest"] += 1
        check(replace(case, missing="latest"), file, seen, topics)


def check_assigned(case: Case, file: Path, seen: Counter[str]) -> None:
    """All assigned partitions that are not there are named. Without them the file is loaded, and
    the rest holds.
    """
    assigned = [place(n, topic) for topic, numbers in case.assigned.items() for n in numbers]
    gone = [each for each in assigned if each not in case.cluster.logs]
    if not gone:
        check(case, file, seen)
        return
    with pytest.raises(StartUnknown) as halted:
        case.starts(case.load(file))
    assert halted.value.found == f"no {', '.join(map(str, gone))}"
    if len(gone) == len(assigned):
        assert halted.value.remedy == "Assign partitions that exist"
        seen["none to assign"] += 1
        return
    form = r"Write assign: ({.*})(, and leave them out of start)?"
    written = re.fullmatch(form, halted.value.remedy)
    assert written is not None, halted.value.remedy
    left: dict[str, list[int]] = {}
    for each in sorted({*assigned} - {*gone}):
        left.setdefault(each.topic, []).append(each.partition)
    said = {topic: without(it, topic, gone) for topic, it in case.said.items() if topic in left}
    assert bool(written[2]) is (said != case.said)
    seen["assign, and start" if written[2] else "assign"] += 1
    # Where the start names none of the rest, the file says that all start at their edge.
    check(
        replace(case, topics={"assign": left}, said=said), file, seen, f"{{assign: {written[1]}}}"
    )


def without(said: Said, topic: str, gone: list[TopicPartition]) -> Said:
    """What is said of the partitions that are not gone."""
    if not isinstance(said, dict):
        return said
    return {number: at for number, at in said.items() if place(number, topic) not in gone}


@pytest.mark.short(("cases",), {(300,)})
@pytest.mark.parametrize("cases", [300, 3_000])
def test_each_partition_starts_at_an_offset_that_it_has_or_is_named_with_what_to_write(
    cases: int, tmp_path: Path
) -> None:
    dice, seen = random.Random(2026), Counter[str]()
    for _ in range(cases):
        check_assigned(drawn(dice), tmp_path / "lake.yml", seen)
    ends = (UNNAMED, BEYOND, TOO_YOUNG, GONE, "all fit", "or latest")
    of_assigned = ("none to assign", "assign", "assign, and start")
    assert min(seen[each] for each in (*ends, *of_assigned)) > 2, seen
