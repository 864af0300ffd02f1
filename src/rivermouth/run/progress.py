"""What a run shows on a terminal while it runs: one live row per pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from rivermouth.protocol.offsets import Position
from rivermouth.run.lines import Lines, as_text
from rivermouth.run.report import CommitReport, OpenReport, PipelineReport, RetryReport
from rivermouth.run.text import compact

Behind = Callable[[Position], "int | None"]
"""How many offsets a position is behind the end offsets now; None: unknown."""


@dataclass
class _Row:
    """What one pipeline has done so far. ``done`` and ``total`` are offsets, not records."""

    total: int
    began: float
    position: Position
    done: int = 0
    records: int = 0
    quarantined: int = 0
    state: str = "reading"
    lag: int | None = None
    asked: float = 0.0

    @property
    def speed(self) -> int:
        """Records per second since the pipeline was opened."""
        return int(self.records / max(time.monotonic() - self.began, 0.1))


class LiveRows(Lines):
    """One live row per pipeline: offsets done, offsets in all, speed, lag, bad records.

    With ``behind`` (a continuous run) the end offsets move: the lag is asked for about every
    second. Without it they are those of the start.
    """

    def __init__(self, console: Console, behind: Behind | None = None) -> None:
        super().__init__(as_text(console))
        self._behind = behind
        self._rows: dict[str, _Row] = {}
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=4)

    def __enter__(self) -> LiveRows:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._behind = None  # the last refresh must not wait for Kafka
        self._live.stop()

    def opened(self, report: OpenReport) -> None:
        row = self._rows.setdefault(
            report.pipeline, _Row(report.behind, time.monotonic(), report.position)
        )
        # One that is opened again goes on counting.
        row.position, row.lag, row.state = report.position, report.behind, "reading"
        row.total = row.done + report.behind
        super().opened(report)

    def committed(self, report: CommitReport) -> None:
        row = self._rows.get(report.pipeline)
        if row is None:  # new partitions are recorded before a pipeline is open
            return
        row.position = report.position
        row.done += sum(each.span for each in report.ranges)
        row.records += sum(each.records for each in report.rows)
        row.quarantined += report.quarantined
        if self._behind is None:
            row.lag = max(0, row.total - row.done)

    def tries_again(self, report: RetryReport) -> None:
        if report.pipeline in self._rows:
            self._rows[report.pipeline].state = "waiting"
        super().tries_again(report)

    def finished(self, report: PipelineReport) -> None:
        if report.pipeline in self._rows:
            self._rows[report.pipeline].state = "done" if report.error is None else "failed"
        super().finished(report)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=16)
        for _ in range(5):
            table.add_column(no_wrap=True)
        for name, row in list(self._rows.items()):
            if self._behind is not None and row.state == "reading":
                self._ask(row)
            total = row.done + (row.lag or 0)
            bad = f"{compact(row.quarantined)} bad" if row.quarantined else row.state
            state = row.state if row.state == "waiting" else bad
            table.add_row(
                name,
                ProgressBar(total=max(total, 1), completed=row.done if total else 1, width=12),
                f"{compact(row.done)}/{compact(total)}",
                f"{compact(row.speed)} rows/s",
                f"lag {compact(row.lag)}",
                state,
            )
        return table

    def _ask(self, row: _Row) -> None:
        if self._behind is not None and time.monotonic() - row.asked > 1:
            row.lag = self._behind(row.position)
            row.asked = time.monotonic()
