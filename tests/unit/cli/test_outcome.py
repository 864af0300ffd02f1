"""The end of ``run``: what is said of each pipeline, how often, and what to type next."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rivermouth.errors import OffsetGap, RivermouthError
from rivermouth.run.outcome import ended
from rivermouth.run.report import Listener, PipelineReport
from tests.unit.cli.conftest import CONFIG, Rivermouth

pytestmark = pytest.mark.unit

GAP = OffsetGap("a gap", where="orders-0", found="9")


def report(name: str, error: RivermouthError | None = None) -> PipelineReport:
    return PipelineReport(name, 1, 40, 0, 5, 1.5, error)


@dataclass
class Ending:
    """Stands for a run whose pipelines end as they are told to."""

    reports: list[PipelineReport]

    def pipelines(
        self, names: Sequence[str], listener: Listener, stop: threading.Event
    ) -> list[PipelineReport]:
        del names, stop
        for each in self.reports:
            listener.finished(each)
        return self.reports


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Ending:
    """The run that the command ``run`` gets."""
    run = Ending([])

    @contextmanager
    def made(*_: object, **__: object) -> Iterator[Ending]:
        yield run

    monkeypatch.setattr("rivermouth.cli.running.local_run", made)
    monkeypatch.setattr("rivermouth.run.starting.Stop.listen", lambda stop: None)
    return run


def test_in_a_log_a_failure_is_told_once_and_each_pipeline_has_a_line_at_the_end(
    rivermouth: Rivermouth, lake_yml: Path, ending: Ending
) -> None:
    ending.reports = [report("orders", GAP), report("bids")]
    done = rivermouth("run", lake_yml)
    assert done.code == 5
    assert done.out.count("RM401 orders-0: a gap") == 1
    assert done.out.count("to do: ") == 1
    assert done.out.splitlines()[-4:] == [
        "",
        "bids: OK, 40 records in 1 commit(s), entry 5, 1.5 s",
        "orders: FAILED RM401, as told above",
        "FAILED: 1 of 2 pipelines, exit code 5",
    ]


def test_on_a_terminal_the_end_tells_the_failure_again_below_the_rows() -> None:
    lines = ended([report("orders", GAP)], stopped=False, shown_before=False).splitlines()
    assert lines[:2] == ["FAILED orders", "  RM401 orders-0: a gap"]
    assert lines[-2].startswith("  to do: ")


def test_a_run_that_was_stopped_says_so() -> None:
    text = ended([report("bids")], stopped=True, shown_before=True)
    assert text.splitlines()[-1] == "OK: stopped; the next run continues from here"


@pytest.mark.parametrize(
    ("command", "word"), [("run", "verify"), ("validate", "doctor"), ("offsets rebuild", "verify")]
)
def test_the_next_command_can_be_typed_as_it_stands(
    rivermouth: Rivermouth, tmp_path: Path, ending: Ending, command: str, word: str
) -> None:
    file = tmp_path / "my lake.yml"
    file.write_text(CONFIG, encoding="utf-8")
    ending.reports = [report("bids")]
    done = rivermouth(*command.split(), file)
    assert done.code == 0
    following = done.out.splitlines()[-1].partition("Next: ")[2]
    assert shlex.split(following) == ["rivermouth", word, str(file)]
