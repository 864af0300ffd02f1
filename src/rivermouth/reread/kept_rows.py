"""Rows of a replay that are evaluated several times, kept so that each time they are the same."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

from rivermouth.protocol.offsets import OffsetRange
from rivermouth.reading.frames import read
from rivermouth.registry.platforms import Capability
from rivermouth.run.assembly import Assembly
from rivermouth.write.bad_records import kept
from rivermouth.write.staging import staged


class KeptRows:
    """Keeps rows in the cache of Spark, or in files where there is none.

    What it keeps lasts until ``held`` ends.
    """

    def __init__(self, shared: Assembly, pipeline: str, held: ExitStack) -> None:
        self._shared = shared
        self._pipeline = pipeline
        self._folder = None
        if not shared.platform.has(Capability.CACHE):
            self._folder = held.enter_context(shared.staging(pipeline))

    @contextmanager
    def decoded(self, ranges: Sequence[OffsetRange]) -> Iterator[DataFrame]:
        """The records of ``ranges``, decoded as the pipeline does it. Kafka is read once."""
        shared = self._shared
        rows = read(shared.session, shared.config, ranges, self._pipeline, secrets=shared.secrets)
        folder = None if self._folder is None else self._folder / uuid.uuid4().hex
        with kept(rows, folder) as batch:
            yield batch

    @contextmanager
    def rows(self, rows: DataFrame) -> Iterator[DataFrame]:
        """The same rows, evaluated once."""
        if self._folder is None:
            yield rows.localCheckpoint()
            return
        with staged(rows, self._folder / uuid.uuid4().hex) as files:
            yield files
