"""What a source feeds with micro-batches, and when it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from rivermouth.config import Pipeline
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks


@dataclass(frozen=True)
class Trigger:
    """When micro-batches start: ``every_ms`` apart, or (None) until the end is reached."""

    every_ms: int | None


class Stop(Protocol):
    """What ends the reading of a source, as a ``threading.Event`` does."""

    def is_set(self) -> bool:
        """Whether the reading is to end."""

    def wait(self, timeout: float) -> bool:
        """Wait for it, at most so many seconds; whether the reading is to end."""


class Batches(Protocol):
    """One pipeline that is open, see ``run.ingest``."""

    @property
    def pipeline(self) -> Pipeline:
        """Its configuration."""

    def batch(
        self,
        raw: DataFrame,
        ranges: Sequence[OffsetRange],
        was_read: Callable[[], object] = lambda: None,
    ) -> None:
        """Commit one micro-batch of raw Kafka rows that covers exactly ``ranges``.

        ``was_read`` may be called once ``raw`` will hardly be read again: only the commit is left;
        and before that, where Kafka already holds another full batch.
        """

    def watermarks(self, position: Position) -> Mapping[TopicPartition, Watermarks]:
        """What Kafka holds now. Raises the Halt that applies to ``position``."""
