"""What the terminal does, as calls of Python: ``ingest``, ``status`` and ``verify``.

They print nothing, do not end the process and handle no signal. A fault of one pipeline is in what
they return; what stands against the whole call is raised.

They are in this folder because a configuration may name secrets of a workspace. They work on any
machine.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Secrets, load
from rivermouth.databricks.workspace import secrets_here
from rivermouth.errors import ConfigError
from rivermouth.local.scratch import scratch_root, volume_folder
from rivermouth.operate.status import Status
from rivermouth.operate.status import status as ask
from rivermouth.run.outcome import Report, read_since, verified
from rivermouth.run.report import Listener, Silent
from rivermouth.run.starting import (
    check_endless,
    platform_with,
    require_spark,
    session_for,
    session_there,
)
from rivermouth.run.tables import status_table
from rivermouth.schemas.known import schemas_of
from rivermouth.storage.lake import Lake
from rivermouth.verification import ProofFiles, Proofs, Verification, beside_offsets, record_states
from rivermouth.verification import verify as verify_pipelines
from rivermouth.verification.tables.catalog import CatalogTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOADED = "folder and environ belong to a path; this configuration is loaded already"


def ingest(
    config: Config | Path | str,
    spark: SparkSession | None = None,
    select: str | Iterable[str] | None = None,
    *,
    continuous: bool = False,
    audit: bool = False,
    listener: Listener | None = None,
    stop: threading.Event | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    secrets: Secrets | None = None,
) -> Report:
    """Bring the tables up to date, as ``rivermouth run`` does; what each pipeline did.

    ``config`` is the path of a file, or a configuration that is loaded; for a path, ``environ`` and
    ``folder`` are those of ``load``. ``spark`` is a session of yours with Delta and Kafka's source.
    It is not ended. None: the session of this process or of the platform; where there is none, a
    local one is started if there are records to read, and ended with the call. ``select``: names,
    as a text with commas or one by one; None: all pipelines.

    The call ends where the topics ended when it began; if ``continuous``, when ``stop`` is set.
    When ``stop`` is set, or the call is interrupted, each pipeline ends after its current batch.
    ``audit`` checks the whole log of each table first. ``listener`` hears what happens, in other
    threads. ``secrets`` reads those that the file names; None: from Databricks.

    Raises ConfigError, and SetupError without Spark. A pipeline's error is in its report.
    """
    known = _loaded(config, environ, folder)
    names = known.selected(select, "select")
    reads, ending = secrets or secrets_here(), stop or threading.Event()
    if not names:
        return Report(())
    require_spark()
    from rivermouth.run.run import Run

    with session_for(known, spark, reads, names) as session:
        platform = platform_with(session.started, known.master)
        if continuous:
            check_endless(platform)
        run = Run(
            known,
            session,
            scratch_root(),
            continuous=continuous,
            audit=audit,
            platform=platform,
            secrets=reads,
        )
        return Report(tuple(run.pipelines(names, listener or Silent(), ending)), ending.is_set())


def status(
    config: Config | Path | str,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    secrets: Secrets | None = None,
) -> Status:
    """Where each pipeline stands, as ``rivermouth status`` shows it. Starts no JVM.

    For the arguments see ``ingest``. What is wrong with a pipeline is its state. Raises
    ConfigError, also where the tables are in a catalog.
    """
    known = _loaded(config, environ, folder)
    found = ask(
        known,
        secrets=secrets or secrets_here(),
        proofs=record_states(known, secrets or secrets_here()),
    )
    return _ShownStatus(found.pipelines)


def verify(
    config: Config | Path | str,
    spark: SparkSession | None = None,
    select: str | Iterable[str] | None = None,
    *,
    strict: bool = False,
    since: str = "",
    record: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    secrets: Secrets | None = None,
) -> Verification:
    """Prove against Kafka that no record is missing or duplicated, as ``rivermouth verify`` does.

    For ``config``, ``select``, ``environ``, ``folder`` and ``secrets`` see ``ingest``. ``spark`` is
    used only where the tables are in a catalog; None: the session of the platform. ``strict``: the
    values of all rows are compared, and what cannot be checked is a fault. ``since`` is that of the
    command: ``last``, a time with its zone, or a duration such as ``1d``. ``record``: whether what
    is proved is recorded for ``since="last"``. ``progress`` is called with a pipeline, the offsets
    that are done, and all offsets.

    What is wrong with the data is in the result. Raises ConfigError, and SourceError where Kafka
    cannot be read.
    """
    known = _loaded(config, environ, folder)
    names = known.selected(select, "select")
    moment = read_since(since, time.time(), "since")
    tables, where = None, known.warehouse
    proofs: Proofs
    if isinstance(where, Catalog):
        require_spark()
        session = spark if spark is not None else session_there()
        tables = CatalogTables(where, lambda statement: session.sql(statement).toArrow())
        proofs = ProofFiles(volume_folder(where) / "proofs")
    else:
        proofs = beside_offsets(Lake.of(known, secrets or secrets_here()))
    found = verify_pipelines(
        known,
        names,
        progress,
        secrets=secrets or secrets_here(),
        tables=tables,
        strict=strict,
        since=moment,
        proofs=proofs,
        record=record,
        schemas=schemas_of(known, secrets or secrets_here(), scratch_root()),
    )
    return _ShownVerification(found.pipelines)


class _ShownStatus(Status):
    """A status that prints as the command shows it."""

    def __str__(self) -> str:
        return status_table(self)


class _ShownVerification(Verification):
    """A verification that prints as the command shows it."""

    def __str__(self) -> str:
        return verified(self)


def _loaded(
    config: Config | Path | str, environ: Mapping[str, str] | None, folder: Path | None
) -> Config:
    if not isinstance(config, Config):
        return load(Path(config), os.environ if environ is None else environ, folder)
    if environ is not None or folder is not None:
        raise ConfigError((_LOADED,))
    return config
