"""rivermouth: where the stream meets the delta.

rivermouth reads Kafka with Spark Structured Streaming and keeps Delta tables exactly up to
date. The Kafka offsets of a batch are recorded in the very commit that makes its rows visible,
so the table's own log is the only truth about what has been read. Spark's checkpoint is
scratch: every run starts a fresh one at the offsets the log names. After any crash, replay or
second driver, each record has had its effect exactly once or lies in quarantine. Where that
cannot be upheld the pipeline halts before it writes, and says which offsets and what to do.
One YAML file describes it all, on a laptop and on Databricks (``rivermouth --help``).

``ingest``, ``status`` and ``verify`` do in Python what ``run``, ``status`` and ``verify`` do in the
terminal. (``run`` is a package here.) To import this package needs neither Spark nor Kafka. Each
name is imported when it is first asked for, so that the command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rivermouth.config import Config, load
    from rivermouth.databricks.calls import ingest, status, verify
    from rivermouth.errors import ConfigError, Halt, RivermouthError
    from rivermouth.operate.status import Status
    from rivermouth.operate.topic import topic
    from rivermouth.operate.topic_report import TopicReport
    from rivermouth.protocol.batches import Batch
    from rivermouth.protocol.offsets import OffsetRange, TopicPartition
    from rivermouth.replay.ranges import RecordedRanges, ranges, ranges_between
    from rivermouth.replay.readable import ReadableRange, readable
    from rivermouth.replay.records import read
    from rivermouth.run.outcome import Report
    from rivermouth.run.report import (
        CommitReport,
        Listener,
        MirrorReport,
        OpenReport,
        PipelineReport,
        RetryReport,
        exit_code,
    )
    from rivermouth.verification import Verification
    from rivermouth.write.sinks import pooled

__all__ = [
    "Batch",
    "CommitReport",
    "Config",
    "ConfigError",
    "Halt",
    "Listener",
    "MirrorReport",
    "OffsetRange",
    "OpenReport",
    "PipelineReport",
    "ReadableRange",
    "RecordedRanges",
    "Report",
    "RetryReport",
    "RivermouthError",
    "Status",
    "TopicPartition",
    "TopicReport",
    "Verification",
    "__version__",
    "exit_code",
    "ingest",
    "load",
    "pooled",
    "ranges",
    "ranges_between",
    "read",
    "readable",
    "status",
    "topic",
    "verify",
]
__version__ = "0.1.0"

_ROOMS = {
    "Config": "config",
    "load": "config",
    "ConfigError": "errors",
    "Halt": "errors",
    "RivermouthError": "errors",
    "CommitReport": "run.report",
    "Listener": "run.report",
    "OpenReport": "run.report",
    "MirrorReport": "run.report",
    "PipelineReport": "run.report",
    "RetryReport": "run.report",
    "exit_code": "run.report",
    "Batch": "protocol.batches",
    "OffsetRange": "protocol.offsets",
    "TopicPartition": "protocol.offsets",
    "RecordedRanges": "replay.ranges",
    "ranges": "replay.ranges",
    "ranges_between": "replay.ranges",
    "read": "replay.records",
    "ReadableRange": "replay.readable",
    "readable": "replay.readable",
    "pooled": "write.sinks",
    "TopicReport": "operate.topic_report",
    "topic": "operate.topic",
    "ingest": "databricks.calls",
    "status": "databricks.calls",
    "verify": "databricks.calls",
    "Report": "run.outcome",
    "Status": "operate.status",
    "Verification": "verification",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
