"""What a run leaves for ``status`` of a pipeline that it tries again."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from rivermouth.errors import KafkaUnreachable
from rivermouth.protocol.offsets import Position
from rivermouth.run.report import OpenReport, PipelineReport, RetryReport, Silent
from rivermouth.run.supervision import RetryNoteListener
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.lake.retry_notes import Retrying, RetryNotes

pytestmark = pytest.mark.unit

AWAY = KafkaUnreachable("no broker answers", where="k:9092")
FAILED = RetryReport("orders", AWAY, 1.0)
OPENED = OpenReport("orders", 3, Position(), 0, 0)
ENDED = PipelineReport("orders", 0, 0, 0, 3, 1.0)
AGAIN = replace(FAILED, tries=2)
Event = RetryReport | OpenReport | PipelineReport


@pytest.fixture
def notes(tmp_path: Path) -> RetryNotes:
    return RetryNotes(Lake.in_folder(tmp_path))


@pytest.fixture
def noting(notes: RetryNotes) -> RetryNoteListener:
    seconds = count(100)
    return RetryNoteListener(Silent(), notes, lambda: float(next(seconds)))


@pytest.mark.parametrize(
    ("events", "since_ms", "at_ms", "tries"),
    [
        ([FAILED], 100_000, 100_000, 1),
        ([FAILED, AGAIN], 100_000, 101_000, 2),
        ([FAILED, OPENED, FAILED], 101_000, 101_000, 1),
        ([FAILED, OPENED, AGAIN], 100_000, 101_000, 2),
    ],
    ids=["once", "twice", "once again", "a batch that fails after each opening"],
)
def test_a_note_tells_since_when_how_often_and_why(
    noting: RetryNoteListener,
    notes: RetryNotes,
    events: list[Event],
    since_ms: int,
    at_ms: int,
    tries: int,
) -> None:
    hear(noting, *events)
    assert notes.read("orders") == Retrying(since_ms, at_ms, tries, str(AWAY))
    assert notes.read("another") is None


@pytest.mark.parametrize("end", [OPENED, ENDED], ids=["is open again", "has ended"])
def test_a_pipeline_takes_its_note_away_when_it(
    noting: RetryNoteListener, notes: RetryNotes, end: Event
) -> None:
    hear(noting, FAILED, end)
    assert notes.read("orders") is None


def hear(listener: RetryNoteListener, *events: Event) -> None:
    for each in events:
        if isinstance(each, RetryReport):
            listener.tries_again(each)
        elif isinstance(each, OpenReport):
            listener.opened(each)
        else:
            listener.finished(each)


def test_a_second_run_that_was_locked_out_leaves_the_note_of_the_first(
    noting: RetryNoteListener, notes: RetryNotes
) -> None:
    noting.tries_again(FAILED)
    RetryNoteListener(Silent(), notes).finished(ENDED)
    assert notes.read("orders") is not None


def test_the_note_of_a_run_that_was_killed_goes_with_the_next_one(notes: RetryNotes) -> None:
    notes.write("orders", Retrying(1, 2, 3, "it was long ago"))
    RetryNoteListener(Silent(), notes).opened(OPENED)
    assert notes.read("orders") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tries": 1}', "7"])
def test_a_note_that_is_half_written_is_none(notes: RetryNotes, tmp_path: Path, text: str) -> None:
    notes.write("orders", Retrying(1, 2, 3, "x"))
    [file] = tmp_path.rglob("orders.json")
    file.write_text(text)
    assert notes.read("orders") is None


def test_a_folder_that_takes_no_note_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "rivermouth").write_text("a file where a folder should be")
    heard: list[RetryReport] = []

    class Hears(Silent):
        def tries_again(self, report: RetryReport) -> None:
            heard.append(report)

    RetryNoteListener(Hears(), RetryNotes(Lake.in_folder(tmp_path))).tries_again(FAILED)
    assert heard == [FAILED]
