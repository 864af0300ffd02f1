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
from rivermouth.storage.lake import Lake
from rivermouth.verification.beginning import Since
from rivermouth.verification.formats.framed import Schemas
from rivermouth.verification.kafka.client import client_options
from rivermouth.verification.pipeline import Checker
from rivermouth.verification.proofs.proof import Bounds
from rivermouth.verification.recording import (
    Attempt,
    ProofFiles,
    Proofs,
    beside_offsets,
    record_states,
    settled,
)
from rivermouth.verification.result import Kind, PipelineProof, Unchecked, Verification
from rivermouth.verification.sharing import share
from rivermouth.verification.tables.lake import LakeTables
from rivermouth.verification.tables.ports import Tables

__all__ = [
    "Bounds",
    "Kind",
    "PipelineProof",
    "ProofFiles",
    "Proofs",
    "Since",
    "Unchecked",
    "Verification",
    "beside_offsets",
    "record_states",
    "verify",
]


def verify(
    config: Config,
    select: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    bounds: Bounds | None = None,
    secrets: Secrets = unresolved,
    tables: Tables | None = None,
    *,
    strict: bool = False,
    since: Since | None = None,
    proofs: Proofs | None = None,
    record: bool = True,
    processes: int = 1,
    schemas: Schemas | None = None,
) -> Verification:
    """Verify the selected pipelines (None: all) against Kafka, read_committed.

    ``progress`` is called with a pipeline, offsets done, and offsets in all; ``secrets`` gives the
    secrets that the configuration only names; ``tables`` says where to read tables (None: in the
    folder of the configuration). ``strict``: the values of all rows are compared, and what could
    not be checked counts as a failure. ``since``: what was proved before, or committed before a
    time, is not read again. ``proofs`` is where what is proved is on record (None: nowhere);
    without ``record`` it is only read. ``processes``: so many pipelines at most are verified at
    once; where there are more than one, ``tables``, ``proofs`` and ``schemas`` are pickled.
    ``schemas`` gives those of the registry by their numbers (``schemas.known.schemas_of``). What is
    wrong with the data is in the result.
    Raises ConfigError for an unknown pipeline, and SourceError where Kafka cannot be read.
    """
    unknown = sorted({*select} - {*config.pipelines}) if select is not None else []
    if unknown:
        raise ConfigError(tuple(f"there is no pipeline {name}" for name in unknown))
    chosen = [name for name in config.pipelines if select is None or name in select]
    checker = Checker(
        config.without_secrets(),
        client_options(config, secrets),
        tables or LakeTables(Lake.of(config, secrets)),
        bounds or (Bounds.of_every_value() if strict else Bounds()),
        strict,
        since,
        proofs,
        schemas,
    )

    def settle(name: str, attempt: Attempt) -> PipelineProof:
        return settled(proofs if record else None, config.pipelines[name], attempt)

    return Verification(share(chosen, checker, settle, progress or _quiet, processes))


def _quiet(pipeline: str, done: int, total: int) -> None:
    """Report nothing."""
