"""The proof: Kafka and the table are read again, by code that shares nothing with the writer.

    ledger (its own reading of the log) -> what Kafka can still show -> quarantine
    -> rows, by the proof of the table's shape -> offsets table -> a value

A format brings its own reader and a shape its own proof, by one line each in ``registry``. Of the
rest of the package, ``verify`` uses the configuration, the registry, the errors and the options of
Kafka clients; a test allows nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.errors import ConfigError
from rivermouth.verify.kafka.client import KafkaSource, client_options
from rivermouth.verify.pipeline import verify_pipeline
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.result import Kind, PipelineProof, Unchecked, Verification
from rivermouth.verify.tables.folder import FolderTables
from rivermouth.verify.tables.ports import Tables

__all__ = ["Bounds", "Kind", "PipelineProof", "Unchecked", "Verification", "verify"]


def verify(
    config: Config,
    select: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    bounds: Bounds | None = None,
    secrets: Secrets = unresolved,
    tables: Tables | None = None,
    *,
    strict: bool = False,
) -> Verification:
    """Verify the selected pipelines (None: all) against Kafka, read_committed.

    ``progress`` is called with a pipeline, offsets done, and offsets in all; ``secrets`` gives the
    secrets that the configuration only names; ``tables`` says where to read tables (None: in the
    folder of the configuration). ``strict``: the values of all rows are compared, and what could
    not be checked counts as a failure. What is wrong with the data is in the result; raises
    ConfigError for a pipeline that is not configured, and SourceError where Kafka cannot be read.
    """
    unknown = sorted({*select} - {*config.pipelines}) if select is not None else []
    if unknown:
        raise ConfigError(tuple(f"there is no pipeline {name}" for name in unknown))
    chosen = [name for name in config.pipelines if select is None or name in select]
    found = tables or FolderTables(config.folder)
    source = KafkaSource(client_options(config, secrets))
    return Verification(
        [
            verify_pipeline(
                config,
                found,
                config.pipelines[name],
                source,
                progress or _quiet,
                bounds or (Bounds.of_every_value() if strict else Bounds()),
                strict=strict,
            )
            for name in chosen
        ]
    )


def _quiet(pipeline: str, done: int, total: int) -> None:
    """Report nothing."""
