"""Everything that a run of the command line tells, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from rivermouth.config import Config, Secrets
from rivermouth.monitor import otel, prometheus
from rivermouth.monitor.metrics import Measured, Meter
from rivermouth.monitor.observing import EVERY_S, Observing
from rivermouth.monitor.sending import alarm_of
from rivermouth.operate.status import Status, status
from rivermouth.operate.survey import stores_in
from rivermouth.run.lines import Lines, Minutes, as_json_lines, as_text
from rivermouth.run.progress import Behind, LiveRows
from rivermouth.run.report import Listener
from rivermouth.storage.lake import Lake


@dataclass(frozen=True)
class Asked:
    """What a run is asked to tell: JSON lines in place of text, figures for Prometheus at an
    address (empty: none) or in a file, and by OpenTelemetry.
    """

    continuous: bool
    json: bool = False
    metrics: str = ""
    metrics_file: Path | None = None
    otel: bool = False

    def meters(self) -> Iterator[Meter]:
        """What keeps its figures. Raises ConfigError, SetupError and MissingPackage."""
        if self.metrics:
            yield prometheus.served(self.metrics)
        if self.metrics_file is not None:
            yield prometheus.written(self.metrics_file)
        if self.otel:
            yield otel.OtelMeter()


@contextmanager
def telling(
    config: Config, secrets: Secrets, asked: Asked, shown: Console, behind: Behind | None
) -> Iterator[Listener]:
    """What listens to a run, for its time: live rows on a terminal, else lines; figures; alerts.

    A run without end says sums once a minute in place of single commits. ``behind`` is for live
    rows. Raises what ``Asked.meters`` does.
    """
    tell = list[Callable[[Status], object]]()
    with ExitStack() as resources:
        say = as_json_lines(shown.file) if asked.json else as_text(shown)
        listener: Listener
        if shown.is_terminal and not asked.json:
            listener = resources.enter_context(LiveRows(shown, behind))
        elif asked.continuous:
            listener = minutes = Minutes(say)
            tell.append(minutes.seen)
        else:
            listener = Lines(say)
        for meter in asked.meters():
            resources.callback(meter.close)
            listener = measured = Measured(listener, meter)
            tell.append(measured.seen)
        if (alarm := alarm_of(config, secrets)) is not None:
            tell.append(alarm.seen)
        stores = stores_in(Lake.of(config, secrets), config)
        look = partial(status, config, secrets=secrets, stores=stores)
        resources.enter_context(Observing(look, tell, EVERY_S if asked.continuous else None))
        yield listener
