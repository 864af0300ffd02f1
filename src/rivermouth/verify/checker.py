"""What verifies the pipelines of a configuration, one at a time. A worker gets a copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from rivermouth.config import Config
from rivermouth.registry.formats import FORMATS, Formats
from rivermouth.registry.shapes import SHAPES, Shapes
from rivermouth.verify.beginning import Known, Since
from rivermouth.verify.kafka.client import KafkaSource
from rivermouth.verify.kafka.source import Source
from rivermouth.verify.pipeline import verify_pipeline
from rivermouth.verify.proofs.proof import Bounds, Progress
from rivermouth.verify.recording import Attempt, Proofs, attempt
from rivermouth.verify.result import PipelineProof
from rivermouth.verify.sharing import Prove
from rivermouth.verify.tables.ports import Tables


@dataclass(frozen=True)
class Checker:
    """``options`` are those of the Kafka client, with secrets in clear text; else see ``verify``.

    It can be pickled where its ``tables`` and ``proofs`` can, and ``config`` holds no secret.
    ``formats`` and ``shapes`` are what is registered where it was made.
    """

    config: Config
    options: Mapping[str, str] = field(repr=False)
    tables: Tables
    bounds: Bounds
    strict: bool
    since: Since | None
    proofs: Proofs | None
    formats: Formats = field(default_factory=lambda: FORMATS)
    shapes: Shapes = field(default_factory=lambda: SHAPES)

    def open(self) -> Prove:
        """Connect to Kafka; the client serves all pipelines that the answer is called for."""
        FORMATS.by_name.update(self.formats.by_name)
        FORMATS.plain_keys.update(self.formats.plain_keys)
        SHAPES.by_name.update(self.shapes.by_name)
        return partial(self._attempt, KafkaSource(self.options))

    def _attempt(self, source: Source, name: str, progress: Progress) -> Attempt:
        return attempt(
            self.proofs,
            self.config.pipelines[name],
            partial(self._prove, source, progress),
        )

    def _prove(self, source: Source, progress: Progress, name: str, known: Known) -> PipelineProof:
        return verify_pipeline(
            self.config,
            self.tables,
            self.config.pipelines[name],
            source,
            progress,
            self.bounds,
            strict=self.strict,
            since=self.since,
            known=known,
        )
