"""What the page tells, read: the status of each pipeline, its newest commits, its bad records.

No JVM, no state of its own, and nothing that a batch would have to do for it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.errors import as_ours
from rivermouth.kafka.facts import AskTopic
from rivermouth.operate.facts import Layout, layout_of
from rivermouth.operate.history import events
from rivermouth.operate.status import PipelineStatus, Proofs, status
from rivermouth.operate.survey import each_of, stores_in
from rivermouth.protocol.commits import CommitRecord
from rivermouth.report.quarantine import Found, bad_records
from rivermouth.report.series import Limits, Series, Weight
from rivermouth.storage.lake import Lake
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Action
from rivermouth.warehouse.delta.log import DeltaLog, record_of

COMMITS = 1000
"""So many of the newest commits of each table are read, where nobody asks for others."""


@dataclass(frozen=True)
class Told:
    """What is told of one pipeline. ``problem``: why its commits cannot be read; empty: they are.

    ``whole``: these are all commits that the log holds. ``layout``: None: it cannot be told.
    """

    pipeline: Pipeline
    status: PipelineStatus
    series: Series
    bad: Found
    whole: bool = True
    problem: str = ""
    layout: Layout | None = None

    def codes(self) -> dict[str, list[int]]:
        """How many bad records there are of each code, by the buckets of ``series.sums``, those
        with most of them first. Under ``""`` are those of which nobody read the code.
        """
        sums = self.series.sums
        found: dict[str, list[int]] = {}
        for commit, each in self.series.bad.items():
            at = each.at_ms // sums.width_ms - sums.span.start
            known = self.bad.codes.get(commit, Counter())
            left = each.records - known.total()
            for code, number in {**known, "": left}.items():
                if number > 0:
                    found.setdefault(code, [0] * len(sums.span))[at] += number
        return dict(sorted(found.items(), key=lambda item: -sum(item[1])))


@dataclass(frozen=True)
class Report:
    """All pipelines, in the order of the file, as they were at a time in ms since 1970."""

    name: str
    at_ms: int
    most: int
    limits: Limits
    pipelines: tuple[Told, ...]


def read_report(
    config: Config,
    *,
    commits: int = COMMITS,
    samples: int = 0,
    secrets: Secrets = unresolved,
    kafka: AskTopic | None = None,
    proofs: Proofs | None = None,
    now: Callable[[], float] = time.time,
) -> Report:
    """Read it: at most so many of the newest ``commits`` of each table, and so many ``samples`` of
    the bad records of each pipeline.

    ``secrets``, ``kafka``, ``proofs`` and ``now`` are as in ``status``. What is wrong with one
    pipeline is told in its place. Raises ConfigError for a catalog.
    """
    lake = Lake.of(config, secrets)
    stores = stores_in(lake, config)
    found = status(config, kafka, now, secrets, stores, proofs)
    stands = {each.name: each for each in found.pipelines}
    limits = Limits.of(len(config.pipelines), samples)

    def look(pipeline: Pipeline) -> Told:
        log = stores(pipeline).log
        assert isinstance(log, DeltaLog), "tables lie as files"
        bad_in = lake.store(pipeline.target.table.quarantine)
        return _told(log, bad_in, pipeline, stands[pipeline.name], limits, commits)

    told = each_of([*config.pipelines.values()], look, lake).values()
    return Report(config.path.name, int(now() * 1000), commits, limits, tuple(told))


def _told(
    log: DeltaLog,
    bad_in: Store,
    pipeline: Pipeline,
    stands: PipelineStatus,
    limits: Limits,
    most: int,
) -> Told:
    series = Series(limits)
    whole, problem = True, ""
    try:
        # Of the version that its status tells of: nothing of the state before it is read again.
        backwards = log.backwards(stands.table_version)
        whole = _take(backwards, pipeline.ledger_name, series, most)
    except Exception as fault:
        problem = str(as_ours(fault, pipeline.name))
    bad = bad_records(bad_in, series.bad, limits.samples)
    layout = stands.layout or (None if problem else layout_of(log))
    return Told(pipeline, stands, series, bad, whole, problem, layout)


def _take(
    backwards: Iterable[tuple[int, list[Action]]], pipeline: str, series: Series, most: int
) -> bool:
    """Let the series take the newest commits; whether these are all."""
    weights: dict[int, Weight] = {}

    def weighed() -> Iterator[CommitRecord]:
        for version, actions in backwards:
            weights[version] = Weight.of(actions)
            yield record_of(version, actions)

    told = events(weighed(), pipeline)
    for event in islice(told, most):
        series.take(event, weights.pop(event.record.version))
    whole = next(told, None) is None
    series.end(whole)
    return whole
