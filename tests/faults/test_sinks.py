"""What the campaign of sends calls a broken promise, as a table of values."""

from collections import Counter
from typing import Any

import pytest

from tests.faults.sinks import LIMIT, judge, judge_function

GOOD = {"a/0/0": 0, "a/0/1": 1}
ALL = list(GOOD.items())


def proof(repeated: int = 0, lost: int = 0, ok: bool = True) -> dict[str, Any]:
    """What verify says of a pipeline."""
    not_checked = {"records_not_in_the_sink": lost}
    return {"ok": ok, "problems": [], "repeated": repeated, "not_checked": not_checked}


@pytest.mark.parametrize(
    ("found", "told", "kills", "most", "wrong"),
    [
        pytest.param(ALL, proof(), 0, False, 0, id="each once"),
        pytest.param(ALL, proof(), 0, True, 0, id="each once, at most once"),
        pytest.param([*ALL, ALL[0]], proof(1), 1, False, 0, id="a repeat, at least once"),
        pytest.param([*ALL, ALL[0]], proof(1), 1, True, 1, id="a repeat, at most once"),
        pytest.param(ALL[:1], proof(0, 1), 1, True, 0, id="a loss, at most once"),
        pytest.param(ALL[:1], proof(0, 1), 1, False, 1, id="a loss, at least once"),
        pytest.param([*ALL, ALL[0]], proof(), 1, False, 1, id="verify missed a repeat"),
        pytest.param(ALL[:1], proof(), 1, True, 1, id="verify missed a loss"),
        pytest.param(ALL, proof(ok=False), 0, False, 1, id="verify found a fault"),
        pytest.param([ALL[0], ("a/0/1", 7)], proof(), 0, False, 1, id="another record's value"),
        pytest.param([*ALL, ("b/0/0", 3)], proof(), 0, False, 1, id="an id that nobody made"),
        pytest.param([*ALL, ALL[0]], proof(1), 0, False, 1, id="a repeat without a kill"),
        pytest.param(ALL + ALL[:1] * (LIMIT + 1), proof(LIMIT + 1), 1, False, 1, id="two batches"),
    ],
)
def test_what_a_topic_holds_is_judged(
    found: list[tuple[str, int]], told: dict[str, Any], kills: int, most: bool, wrong: int
) -> None:
    """Each broken promise gives a line, and nothing else does."""
    assert len(judge(GOOD, found, told, kills, most).wrong) == wrong


@pytest.mark.parametrize(
    ("stored", "told", "wrong"),
    [
        pytest.param([0, 1], proof(), 0, id="each once"),
        pytest.param([0], proof(), 1, id="one is lost"),
        pytest.param([0, 1, 1], proof(), 1, id="one is there again"),
        pytest.param([0, 2], proof(), 1, id="another record"),
        pytest.param([0, 1], proof(ok=False), 1, id="verify found a fault"),
    ],
)
def test_what_a_function_stored_is_judged(
    stored: list[int], told: dict[str, Any], wrong: int
) -> None:
    """A function that keeps its offsets with its rows stores each record once."""
    assert len(judge_function(GOOD, Counter(stored), told).wrong) == wrong
