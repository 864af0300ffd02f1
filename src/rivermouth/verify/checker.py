"""What verifies the pipelines of a configuration, one at a time. A worker gets a copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from rivermouth.config import Config
from rivermouth.verify.beginning import NOTHING, Known, Since
from rivermouth.verify.kafka.client import KafkaSource
from rivermouth.verify.kafka.source import Source
from rivermouth.verify.pipeline import verify_pipeline
from rivermouth.verify.proofs.proof import Bounds, Progress
from rivermouth.verify.recording import Proofs, proven
from rivermouth.verify.result import PipelineProof
from rivermouth.verify.sharing import Prove
from rivermouth.verify.tables.ports import Tables


@dataclass(frozen=True)
class Checker:
    """``options`` are those of the Kafka client, with secrets in clear text; else see ``verify``.

    It can be pickled where its ``tables`` and ``proofs`` can, and ``config`` holds no secret.
    """

    config: Config
    options: Mapping[str, str]
    tables: Tables
    bounds: Bounds
    strict: bool
    since: Since | None
    proofs: Proofs | None
    record: bool

    def open(self) -> Prove:
        """Connect to Kafka; the client serves all pipelines that the answer is called for."""
        return partial(self._prove, KafkaSource(self.options))

    def _prove(self, source: Source, name: str, progress: Progress) -> PipelineProof:
        def prove(name: str, known: Known) -> PipelineProof:
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

        if self.proofs is None:
            return prove(name, NOTHING)
        return proven(self.proofs, self.config.pipelines[name], prove, keep=self.record)
