"""What the campaign of sends calls a broken promise, as a table of values."""

from collections import Counter
from typing import Any

import pytest

from tests.faults.sinks import LIMIT, judge

A, B = ("a/0/0", 0), ("a/0/1", 1)
LEAST, MOST, NOBODY_KILLED = (LIMIT, 0), (0, LIMIT), (0, 0)


def proof(repeated: int = 0, lost: int = 0, ok: bool = True) -> dict[str, Any]:
    """What verify says of a pipeline."""
    not_checked = {"records_not_in_the_sink": lost}
    return {"ok": ok, "problems": [], "repeated": repeated, "not_checked": not_checked}


@pytest.mark.parametrize(
    ("found", "proved", "may", "wrong"),
    [
        pytest.param([A, B], proof(), NOBODY_KILLED, [], id="each once"),
        pytest.param([A, B, A], proof(1), LEAST, [], id="a repeat, at least once"),
        pytest.param([A, B, A], proof(1), MOST, ["may be"], id="a repeat, at most once"),
        pytest.param([A], proof(0, 1), MOST, [], id="a loss, at most once"),
        pytest.param([A], proof(0, 1), LEAST, ["may be"], id="a loss, at least once"),
        pytest.param([A, B, A], proof(), LEAST, ["verify says"], id="verify missed a repeat"),
        pytest.param([A], proof(), MOST, ["verify says"], id="verify missed a loss"),
        pytest.param([A, B], proof(ok=False), NOBODY_KILLED, ["verify: "], id="verify found it"),
        pytest.param(
            [A, ("a/0/1", 7)], proof(1, 1), (1, 1), ["no record"], id="another record's value"
        ),
        pytest.param([A, B, ("b/0/0", 3)], proof(1), LEAST, ["no record"], id="an id of nobody"),
        pytest.param([A, B, A], proof(1), NOBODY_KILLED, ["may be"], id="a repeat without a kill"),
        pytest.param([A] * (LIMIT + 2) + [B], proof(LIMIT + 1), LEAST, ["may be"], id="too many"),
    ],
)
def test_what_a_sink_holds_is_judged(
    found: list[Any], proved: dict[str, Any], may: tuple[int, int], wrong: list[str]
) -> None:
    """Each broken promise gives a line, and nothing else does."""
    said = judge(Counter([A, B]), Counter(found), proved, *may).wrong
    assert len(said) == len(wrong), said
    assert all(words in line for words, line in zip(wrong, said, strict=True)), said
