"""The product as a peer of the benchmarks: it drains a topic, follows one, or has nothing to read.

An order with ``trigger_ms`` is a continuous run, which ends when it has read ``messages`` records;
any other reads up to the end of the topic, as ``rivermouth run`` does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from bids import DDL
from peer import cpu_seconds, peak_mb
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.run import feeding
from rivermouth.run.report import CommitReport, OpenReport, PipelineReport, Silent
from rivermouth.run.run import Run

IDLE_PARTS = 6
"""In so many parts is measured what little is used: a worker of Spark that ends is in one only."""
_SETTLE_S = 5


class _Clock(Silent):
    """Records when the pipeline opened and when it committed batches after that.

    ``read`` is set when so many ``messages`` are committed, or when the pipeline has ended.
    """

    def __init__(self, messages: int) -> None:
        self.began = 0.0
        self.commits: list[float] = []
        self.used: list[float] = []
        self.error: str | None = None
        self.read = threading.Event()
        self._left = messages

    @property
    def fault(self) -> str | None:
        """Why not all messages are committed, or the pipeline has failed."""
        return self.error or (f"ours: {self._left} records are left" if self._left > 0 else None)

    @property
    def ended(self) -> float:
        return self.commits[-1] if self.commits else self.began

    def opened(self, report: OpenReport) -> None:
        self.began = time.monotonic()
        self.commits.clear()  # of newly discovered partitions
        self.used = [cpu_seconds(os.getpid())]

    def committed(self, report: CommitReport) -> None:
        self.commits.append(time.monotonic())
        self.used.append(cpu_seconds(os.getpid()))
        self._left -= report.applied + report.quarantined
        if self._left <= 0:
            self.read.set()

    def finished(self, report: PipelineReport) -> None:
        self.error = str(report.error) if report.error else None
        self.read.set()


def ours(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Read the topic with the product; return the time from open to the last commit.

    ``startup`` is the time until the pipeline was open, ``batches`` is that of each commit,
    ``cpus`` are its CPU-seconds, and ``mb`` the most memory that this process has had, without its
    JVM. ``least`` in an order takes the place of what ``feeding.least_of_each`` says.
    """
    continuous = "trigger_ms" in order
    clock = _Clock(order["messages"] if continuous else 0)
    run = _run(session, order, table)
    if "least" in order:
        given, few = order["least"], feeding.FEW_PARTITIONS
        feeding.least_of_each = lambda *of: given if of[-1] > few else 1
    stop = clock.read if continuous else threading.Event()
    limit = threading.Timer(order.get("limit_s", 0), stop.set)
    limit.daemon = True
    asked = time.monotonic()
    if continuous:
        limit.start()
    run.pipelines(["bids"], clock, stop)
    limit.cancel()
    if clock.fault:
        raise SystemExit(clock.fault)
    return {
        "seconds": clock.ended - clock.began,
        "startup": clock.began - asked,
        "batches": [end - start for start, end in pairwise([clock.began, *clock.commits])],
        "cpus": [end - start for start, end in pairwise(clock.used)],
        "mb": peak_mb(),
    }


def nothing(session: SparkSession, order: Mapping[str, Any], table: Path) -> dict[str, Any]:
    """Run a pipeline that has read its topic; return the CPU-seconds of each part of ``seconds``.

    ``session`` are those of as many parts before, without a pipeline.
    """
    clock, stop = _Clock(order["messages"]), threading.Event()
    run = _run(session, order, table)
    alone = _cpu_of(order["seconds"])
    arguments = (["bids"], clock, stop)
    thread = threading.Thread(target=run.pipelines, args=arguments, daemon=True)
    thread.start()
    clock.read.wait(order["limit_s"])
    time.sleep(_SETTLE_S)
    used = _cpu_of(order["seconds"])
    stop.set()
    thread.join()
    if clock.fault:
        raise SystemExit(clock.fault)
    return {"used": used, "session": alone}


def _cpu_of(seconds: float) -> list[float]:
    """The CPU-seconds that this process and its JVM use in each part of so many seconds."""
    marks = [cpu_seconds(os.getpid())]
    for _ in range(IDLE_PARTS):
        time.sleep(seconds / IDLE_PARTS)
        marks.append(cpu_seconds(os.getpid()))
    return [end - start for start, end in pairwise(marks)]


def _run(session: SparkSession, order: Mapping[str, Any], table: Path) -> Run:
    """The run of an order; its configuration is written beside the table's folder."""
    folder = table.parent.parent
    source = {
        "topics": [order["topic"]],
        "format": "json",
        "max_offsets_per_trigger": order["per_batch"],
    }
    rows = {"table": f"{table.parent.name}.{table.name}", **order.get("target", {})}
    target = order.get("sink", rows)
    continuous = "trigger_ms" in order
    trigger = {"trigger": f"{order['trigger_ms']}ms"} if continuous else {}
    file = folder / "rivermouth.yml"
    told = {
        "version": 1,
        "kafka": {"bootstrap.servers": order["servers"]},
        **order.get("where", {"warehouse": str(folder)}),
        "pipelines": {"bids": {"source": source, "schema": DDL, "target": target, **trigger}},
    }
    file.write_text(json.dumps(told), encoding="utf-8")
    return Run(load(file), session, folder / "scratch", continuous=continuous)
