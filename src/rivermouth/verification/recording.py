"""Keeping what was proved: a small file for each pipeline, beside the offsets table.

It is no part of the guarantee. A verification reads, and its verdict does not depend on whether it
can write. A file is replaced as a whole, so every reader sees one whole record, and each record is
true by itself. Of two verifications that end in the same moment, one record is lost.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import obstore

from rivermouth.config import OFFSETS_TABLE, Config, Pipeline, Secrets, unresolved
from rivermouth.storage.client import Client
from rivermouth.storage.faults import asked
from rivermouth.storage.lake import Lake
from rivermouth.verification.beginning import standing
from rivermouth.verification.proved import Proved, Recording, RecordState, extended, whole
from rivermouth.verification.result import PipelineProof, Unchecked
from rivermouth.verification.tables.lake import LakeTables

_AT_MOST = 10_000
"""So many commits are read to tell which records stand, of all pipelines; more would be slow."""
_LATER = (Unchecked.UNCOVERED, Unchecked.AHEAD)
"""What no entry covers yet. An entry that comes to cover it is proved after it."""


class Proofs(Protocol):
    """Where what was proved is kept."""

    def read(self, pipeline: str) -> Recording:
        """What is on record of a pipeline."""

    def write(self, proved: Proved) -> None:
        """Replace the record of a pipeline. Raises OSError."""


@dataclass(frozen=True)
class ProofObjects:
    """One object for each pipeline, in an object store, below a prefix."""

    client: Client
    prefix: str

    def read(self, pipeline: str) -> Recording:
        """See ``Proofs``."""
        path = f"{self.prefix}/{pipeline}.json"
        try:
            content = asked(path, lambda: obstore.get(self.client.objects, path).bytes())
            return Recording(Proved.parse(json.loads(bytes(content))))
        except FileNotFoundError:
            return Recording()
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as fault:
            return Recording(problem=f"the recorded proof cannot be read: {path}: {fault!r}")

    def write(self, proved: Proved) -> None:
        """See ``Proofs``."""
        path = f"{self.prefix}/{proved.pipeline}.json"
        content = json.dumps(proved.as_dict(), indent=1).encode()
        asked(path, lambda: obstore.put(self.client.objects, path, content))


@dataclass(frozen=True)
class ProofFiles:
    """One file for each pipeline in ``folder``, which is created when the first is written."""

    folder: Path

    def read(self, pipeline: str) -> Recording:
        """See ``Proofs``."""
        file = self._file(pipeline)
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            return Recording(Proved.parse(facts))
        except FileNotFoundError:
            return Recording()
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as fault:
            return Recording(problem=f"the recorded proof cannot be read: {file}: {fault!r}")

    def write(self, proved: Proved) -> None:
        """See ``Proofs``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # Not by ``tempfile``: what that makes, only its owner may read.
        new = self.folder / f"{proved.pipeline}-{uuid.uuid4().hex}.new"
        try:
            new.write_text(json.dumps(proved.as_dict(), indent=1), encoding="utf-8")
            new.replace(self._file(proved.pipeline))
        except BaseException:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def _file(self, pipeline: str) -> Path:
        return self.folder / f"{pipeline}.json"


def beside_offsets(lake: Lake) -> ProofFiles | ProofObjects:
    """Where records are kept for the tables of a lake: beside the offsets table."""
    if (folder := lake.folder) is not None:
        return ProofFiles(OFFSETS_TABLE.path(folder).parent / "proofs")
    return ProofObjects(lake.client, lake.path(OFFSETS_TABLE.schema, "proofs"))


def record_states(
    config: Config, secrets: Secrets = unresolved
) -> Callable[[Pipeline], RecordState | None]:
    """Tells what is on record of each pipeline of a warehouse in a folder, and whether it stands.

    None where nothing is on record, or where it cannot be read. Each pipeline has the same share of
    the commits that are read, so that what is told of one does not depend on the others.
    """
    share = _AT_MOST // max(1, len(config.pipelines))
    lake = Lake.of(config, secrets)
    proofs, tables = beside_offsets(lake), LakeTables(lake)

    def of(pipeline: Pipeline) -> RecordState | None:
        proved = proofs.read(pipeline.ledger_name).proved
        if proved is None:
            return None
        if proved.table != str(pipeline.target.table):
            return RecordState(proved, f"it is of the table {proved.table}")
        return standing(tables.commits(pipeline.target.table), proved, share)

    return of


@dataclass(frozen=True)
class Attempt:
    """A verification of one pipeline; ``then`` was on record of it when it began.

    It began and ended at these times, in ms since 1970.
    """

    proof: PipelineProof
    then: Recording
    began_ms: int
    ended_ms: int


def settled(proofs: Proofs | None, pipeline: Pipeline, attempt: Attempt) -> PipelineProof:
    """The proof of an attempt, with what is on record after it, where ``proofs`` keeps it.

    Never raises for a place that cannot be written.
    """
    if proofs is None:
        return attempt.proof
    now = proofs.read(pipeline.ledger_name).proved
    wanted = to_record(pipeline, attempt, now)
    if wanted is None:
        return attempt.proof
    if isinstance(wanted, str):
        return replace(attempt.proof, recording=Recording(now, wanted))
    try:
        proofs.write(wanted)
    except OSError as fault:
        problem = f"the record cannot be written: {fault}"
        return replace(attempt.proof, recording=Recording(now, problem))
    return replace(attempt.proof, recording=Recording(wanted))


def to_record(pipeline: Pipeline, attempt: Attempt, now: Proved | None) -> Proved | str | None:
    """What to write, or why nothing is; None where there is nothing to say. Pure.

    ``now`` is on record since the verification ended.
    """
    proof, then, reach = attempt.proof, attempt.then.proved, attempt.proof.reach
    if proof.found:
        return None if now is None else replace(now, failed_ms=attempt.ended_ms)
    if reach is None or not proof.ok:
        return None if reach is None else "with --strict, not everything could be checked"
    found = Proved(
        pipeline=pipeline.ledger_name,
        table=str(pipeline.target.table),
        first=reach.first,
        last=reach.last,
        position=reach.position,
        at_ms=attempt.began_ms,
        full_entry=reach.last.sequence,
        full_ms=attempt.began_ms,
        strict=proof.strict,
        left={what.value: number for what, number in proof.left.items() if what not in _LATER},
        former=reach.former,
    )
    if reach.before is None:
        return whole(now, found, attempt.began_ms)
    if reach.before.proved_ms is None or then is None:
        return f"entries up to {reach.before.entry} were not checked"
    if Unchecked.FOREIGN in proof.left:
        return "others may have changed rows that were not read again"
    if now != then:
        return "another verification recorded its proof meanwhile"
    if reach.last.sequence < then.last.sequence:
        return "the recorded proof reaches further"
    return extended(then, found)
