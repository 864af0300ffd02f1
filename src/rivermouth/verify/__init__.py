"""The proof: Kafka and the table read again, by code that shares nothing with the writer.

    ledger (own reading of the log) -> Kafka's identity -> quarantine -> rows, by mode
    -> offsets table -> a value

Of the rest of the package it uses the configuration and the errors, nothing else; a test
holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.errors import ConfigError
from rivermouth.verify.kafka.source import Source, client_options
from rivermouth.verify.pipeline import Bounds, verify_pipeline
from rivermouth.verify.result import Kind, PipelineProof, Verification
from rivermouth.verify.tables.folder import FolderTables, Tables

__all__ = ["Bounds", "Kind", "PipelineProof", "Verification", "verify"]


def verify(
    config: Config,
    select: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    bounds: Bounds | None = None,
    secrets: Secrets = unresolved,
    tables: Tables | None = None,
) -> Verification:
    """Verify the selected pipelines (None: all) against Kafka, read_committed.

    ``progress`` is called with a pipeline, offsets done, and offsets in all; ``secrets``
    knows what the configuration only names; ``tables`` (None: those in the folder of the
    configuration) is where they are read. What is wrong with the data is in the result;
    raises ConfigError for a pipeline that is not configured, and SourceError where Kafka
    cannot be read.
    """
    unknown = sorted({*select} - {*config.pipelines}) if select is not None else []
    if unknown:
        raise ConfigError(tuple(f"there is no pipeline {name}" for name in unknown))
    chosen = [name for name in config.pipelines if select is None or name in select]
    found = tables or FolderTables(config.folder)
    source = Source(client_options(config, secrets))
    return Verification(
        [
            verify_pipeline(
                config,
                found,
                config.pipelines[name],
                source,
                progress or _quiet,
                bounds or Bounds(),
            )
            for name in chosen
        ]
    )


def _quiet(pipeline: str, done: int, total: int) -> None:
    """Report nothing."""
