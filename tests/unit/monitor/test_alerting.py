"""Which alerts are due, and that each goes out once over crashes at every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rivermouth.config.alerts import Alerts, Condition, read_conditions
from rivermouth.config.problems import Refused
from rivermouth.config.secret import Secret
from rivermouth.monitor.alert_notes import AlertNotes
from rivermouth.monitor.alerting import Alert, Event, due, from_dict, holds
from rivermouth.monitor.sending import Alarm
from rivermouth.operate.pace import Pace, State, Step
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.operate.waiting import Waiting
from rivermouth.protocol.kafka_facts import Outlook, TimeLeft
from rivermouth.storage.client import Client
from rivermouth.storage.lake import Lake

pytestmark = pytest.mark.unit

OK = PipelineStatus("orders", State.OK, "s.orders", lag_messages=0, lag_seconds=0.0)
BLOCKED = replace(
    OK, state=State.BLOCKED, reason="RM404 t: another topic. Resume", lag_messages=None
)
UNKNOWN = replace(OK, state=State.UNKNOWN, reason="RM301 no broker", lag_messages=None)
LATE = replace(
    OK,
    state=State.SLOW,
    lag_messages=9,
    lag_seconds=700.0,
    waiting=Waiting(1, TimeLeft(Outlook.BY_AGE, "", 3_600.0)),
)
BAD = replace(OK, pace=Pace((Step(0, 100, None, 90, 0), Step(1, 100, None, 60, 3))))


def condition(text: str) -> Condition:
    [found] = read_conditions([text])
    return found


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("blocked", BLOCKED, True),
        ("blocked", OK, False),
        ("blocked", UNKNOWN, None),
        ("unknown", UNKNOWN, True),
        ("slow", LATE, True),
        ("quarantine > 1%", BAD, True),
        ("quarantine>2.5 %", BAD, False),
        ("quarantine > 1%", OK, False),
        ("quarantine > 1%", UNKNOWN, None),
        ("retention < 2h", LATE, True),
        ("retention < 30m", LATE, False),
        ("retention < 2h", OK, False),
        ("retention < 2h", BLOCKED, None),
        ("lag > 10m", LATE, True),
        ("lag > 1d", LATE, False),
        ("lag > 10m", OK, False),
        ("lag > 10m", replace(OK, lag_seconds=None), None),
    ],
)
def test_a_condition_holds_or_not_or_nobody_can_tell(
    text: str, found: PipelineStatus, expected: bool | None
) -> None:
    assert holds(condition(text), found) is expected


@pytest.mark.parametrize(
    "wrong", [["bloked"], [], "blocked", ["quarantine > 1"], ["lag > 10"], [5], ["slow", "slow"]]
)
def test_a_condition_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(Refused):
        read_conditions(wrong)


def test_an_alert_is_due_once_for_each_change() -> None:
    of, former = condition("blocked"), None
    told = list[tuple[str, str]]()
    for number, found in enumerate((OK, BLOCKED, BLOCKED, UNKNOWN, OK, OK, BLOCKED)):
        alert = due(of, found, former, ["webhook"], number)
        if alert is not None and alert is not former:
            told.append((alert.id, alert.event.value))
            assert (alert.at_ms, alert.pending) == (number, ("webhook",))
        former = alert.told("webhook") if alert is not None else None
    (first, raised), (same, resolved), (second, again) = told
    assert (raised, resolved, again) == ("raised", "resolved", "raised")
    assert first == same != second


def test_an_alert_says_the_reason_the_remedy_and_the_value() -> None:
    told = {
        text: due(condition(text), found, None, (), 0)
        for text, found in (("blocked", BLOCKED), ("quarantine > 1%", BAD), ("lag > 10m", LATE))
    }
    assert {text: each.text for text, each in told.items() if each} == {
        "blocked": "orders: blocked, it is BLOCKED: RM404 t: another topic. Resume",
        "quarantine > 1%": "orders: quarantine > 1% (now 2.00%), it is OK",
        "lag > 10m": "orders: lag > 10m (now 11.7 m), it is SLOW",
    }


def test_a_note_is_read_as_it_was_written() -> None:
    notes = AlertNotes(Lake(Client.in_memory(), "lake", "memory"))
    alert = Alert("i", "orders", "lag > 10m", Event.RAISED, 5, "text", ("slack", "email"))
    assert notes.read("orders", "lag > 10m") is None
    notes.write(alert)
    assert notes.read("orders", "lag > 10m") == alert
    assert from_dict(alert.told("slack").as_dict()).pending == ("email",)


class Killed(BaseException):
    """The process is gone."""


class Crashing:
    """Counts the effects of a process, and ends it before or after one of them."""

    def __init__(self, at: int | None) -> None:
        self._at, self.count = at, 0

    def step(self) -> None:
        self.count += 1
        if self.count == self._at:
            raise Killed


class CrashingNotes(AlertNotes):
    def __init__(self, lake: Lake, crashing: Crashing) -> None:
        super().__init__(lake)
        self._crashing = crashing

    def write(self, alert: Alert) -> None:
        self._crashing.step()
        super().write(alert)
        self._crashing.step()


ALERTS = Alerts(on=(condition("blocked"), condition("lag > 10m")), webhook=Secret("http://x"))
HISTORY = (OK, BLOCKED, BLOCKED, OK, LATE, OK, BLOCKED)


def told_over(crashes: Iterator[int | None]) -> list[tuple[str, str, str, str]]:
    """What two ways received over a history, in which a process dies at these steps."""
    lake, received = Lake(Client.in_memory(), "lake", "memory"), list[tuple[str, str, str, str]]()
    for found in HISTORY:
        while True:
            crashing = Crashing(next(crashes, None))

            def send(way: str, alert: Alert, crashing: Crashing = crashing) -> None:
                crashing.step()
                received.append((way, alert.condition, alert.id, alert.event.value))
                crashing.step()

            ways = {
                name: lambda alert, name=name, send=send: send(name, alert)
                for name in ("webhook", "email")
            }
            try:
                Alarm(ALERTS, CrashingNotes(lake, crashing), ways, lambda: 1.0).seen(
                    Status([found])
                )
            except Killed:
                continue
            break
    return received


def test_each_alert_goes_out_once() -> None:
    received = told_over(iter(()))
    assert {*Counter(received).values()} == {1}
    assert [(each[0], each[1], each[3]) for each in received] == [
        ("webhook", "blocked", "raised"),
        ("email", "blocked", "raised"),
        ("webhook", "blocked", "resolved"),
        ("email", "blocked", "resolved"),
        ("webhook", "lag > 10m", "raised"),
        ("email", "lag > 10m", "raised"),
        ("webhook", "lag > 10m", "resolved"),
        ("email", "lag > 10m", "resolved"),
        ("webhook", "blocked", "raised"),
        ("email", "blocked", "raised"),
    ]


@pytest.mark.parametrize("step", range(1, 9))
def test_a_crash_at_any_step_loses_none_and_makes_no_other(step: int) -> None:
    """A process dies at this step at each moment of the history, and is started again."""
    crashes = (each for _ in HISTORY for each in (step, None))
    received = told_over(crashes)
    assert {*received} == {*told_over(iter(()))}
    assert max(Counter(received).values()) <= 2, "once more with the same id, where it was sent"


def test_an_end_is_told_although_nobody_knows_whether_the_beginning_was_heard() -> None:
    lake, received = Lake(Client.in_memory(), "lake", "memory"), list[str]()

    def dies(alert: Alert) -> None:
        received.append(alert.event.value)
        raise Killed

    with pytest.raises(Killed):
        Alarm(ALERTS, AlertNotes(lake), {"slack": dies}, lambda: 1.0).seen(Status([BLOCKED]))
    ways = {"slack": lambda alert: received.append(alert.event.value)}
    Alarm(ALERTS, AlertNotes(lake), ways, lambda: 1.0).seen(Status([OK]))
    assert received == ["raised", "resolved"]


def test_a_way_that_fails_is_tried_at_the_next_look_and_the_others_go_on() -> None:
    lake, received = Lake(Client.in_memory(), "lake", "memory"), list[str]()
    fails = [True, True, False]

    def slack(alert: Alert) -> None:
        if fails.pop(0):
            raise OSError("away")
        received.append(f"slack {alert.event.value}")

    ways = {"slack": slack, "email": lambda alert: received.append(f"email {alert.event.value}")}
    alarm = Alarm(ALERTS, AlertNotes(lake), ways, lambda: 1.0)
    for _ in range(4):
        alarm.seen(Status([BLOCKED]))
    assert received == ["email raised", "slack raised"]
