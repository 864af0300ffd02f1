"""What the model holds of totals, of first rows and of a sink, as tables of values."""

from __future__ import annotations

import pytest

from tests.faults.model.configurations import FILES
from tests.faults.model.effect_judge import REPEATED, UNSENT, WRONG_ROWS, wrong_rows, wrongly_sent
from tests.faults.model.effects import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    FIRST_ROWS,
    ROWS,
    TOTALS,
    Effect,
    Rows,
    Wrote,
    merged,
)
from tests.faults.model.state import (
    RESTORE,
    Driver,
    Entry,
    Other,
    Sent,
    Sink,
    State,
    Table,
    Topic,
)

pytestmark = pytest.mark.unit

CREATED = Other("CREATE")
TOPIC = Topic(high=3, end=3)
ONE, TWO = (1, 0, 0), (1, 0, 1)


def entry(start: int, until: int, *wrote: Wrote, commit: str = "a") -> Entry:
    """A batch of the topic's records."""
    return Entry("batch", 1, start, until, read=1, commit=commit, wrote=wrote)


def added(key: int, value: int) -> Wrote:
    return Wrote(key, value, new=True)


def replaced(key: int, value: int) -> Wrote:
    return Wrote(key, value, new=False)


SUMMED = (entry(0, 1, added(0, 1)), entry(1, 3, replaced(0, 17), added(1, 256)))
BACK = Other(RESTORE, 1)


def test_a_commit_replaces_what_it_has_read_and_adds_what_it_has_not() -> None:
    assert merged(((0, 1), (1, 2)), [replaced(0, 5), added(2, 7)]) == ((0, 5), (1, 2), (2, 7))
    assert merged(((0, 1),), [added(0, 5)]) == ((0, 1), (0, 5)), "a second row of the key"


@pytest.mark.parametrize(
    ("effect", "rows", "records", "wrote"),
    [
        (TOTALS, (), [ONE, TWO], (added(0, 17),)),
        (TOTALS, ((0, 1),), [TWO, (1, 0, 2)], (replaced(0, 17), added(1, 256))),
        (TOTALS, ((0, 1),), [], ()),
        (FIRST_ROWS, (), [ONE, TWO], (added(0, 1),)),
        (FIRST_ROWS, ((0, 1),), [TWO, (1, 0, 2)], (added(1, 256),)),
    ],
)
def test_what_a_batch_writes_rests_on_the_rows_that_it_reads(
    effect: Effect, rows: Rows, records: list[tuple[int, int, int]], wrote: tuple[Wrote, ...]
) -> None:
    assert effect.change is not None
    assert effect.change(rows, records) == wrote


@pytest.mark.parametrize(
    ("effect", "log", "wrong"),
    [
        pytest.param(TOTALS, SUMMED, False, id="the plain sums"),
        pytest.param(TOTALS, (*SUMMED, BACK), False, id="RESTORE takes rows and entries back"),
        pytest.param(TOTALS, (entry(0, 1),), True, id="a record was not added"),
        pytest.param(TOTALS, (entry(0, 1, added(0, 2)),), True, id="a record was added twice"),
        pytest.param(
            TOTALS, (entry(0, 1, added(0, 1)), entry(1, 2, added(0, 16))), True, id="two rows"
        ),
        pytest.param(FIRST_ROWS, (entry(0, 2, added(0, 1)),), False, id="the first one"),
        pytest.param(FIRST_ROWS, (entry(0, 2, added(0, 16)),), True, id="a later one"),
        pytest.param(
            FIRST_ROWS,
            (entry(0, 1, added(0, 1)), entry(1, 2, replaced(0, 16))),
            True,
            id="a later one in its place",
        ),
        pytest.param(ROWS, (entry(0, 2),), False, id="each record is a row"),
    ],
)
def test_rows_are_judged_by_the_records_in_effect(
    effect: Effect, log: tuple[Entry | Other, ...], wrong: bool
) -> None:
    found = list(wrong_rows(Table((CREATED, *log)), TOPIC, FILES, effect))
    assert [each.split(":")[0] for each in found] == [WRONG_ROWS] * wrong


A, B = entry(0, 1, commit="a"), entry(0, 1, commit="b")


@pytest.mark.parametrize(
    ("log", "sent", "broken", "attempt", "least", "most"),
    [
        pytest.param((A,), "a", "", "", "", "", id="sent"),
        pytest.param((A,), "", "", "", UNSENT, UNSENT, id="not sent"),
        pytest.param((A,), "", "a", "", UNSENT, "", id="not sent: killed"),
        pytest.param((A,), "", "", "a", UNSENT, "", id="not sent yet"),
        pytest.param((A,), "aa", "", "", REPEATED, REPEATED, id="twice by one batch"),
        pytest.param((B,), "ab", "", "", REPEATED, REPEATED, id="by two, and nobody was killed"),
        pytest.param((B,), "ab", "a", "", "", REPEATED, id="by two, one was killed"),
        pytest.param((B,), "ab", "", "a", "", REPEATED, id="by two, one is overtaken"),
        pytest.param((A, Other(RESTORE, 0), B), "ab", "", "", "", "", id="by two, one is undone"),
        pytest.param((), "a", "", "a", "", "", id="ahead of its commit"),
    ],
)
def test_a_sink_is_judged_by_the_entries_in_effect(
    log: tuple[Entry | Other, ...], sent: str, broken: str, attempt: str, least: str, most: str
) -> None:
    sink = Sink(tuple(Sent(each, ONE) for each in sent), tuple(broken))
    drivers = (Driver(attempt=attempt or None),)
    state = State(Table((CREATED, *log)), TOPIC, drivers, sink=sink)
    found = {
        effect: wrongly_sent(state._replace(effect=effect), FILES).split(":")[0]
        for effect in (AT_LEAST_ONCE, AT_MOST_ONCE)
    }
    assert (found[AT_LEAST_ONCE], found[AT_MOST_ONCE]) == (least, most)
