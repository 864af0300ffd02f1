"""Which way the commits of a pipeline are made: by the driver, or through Spark; and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rivermouth.config import Commit, Pipeline
from rivermouth.write.files.known import Definition, why_not


@dataclass(frozen=True)
class Way:
    """How commits are made. ``reason``: why by Spark, in a clause; empty: by the driver.

    ``alone``: they carry entries alone; else rows, as files.
    """

    reason: str = ""
    alone: bool = False

    @property
    def by(self) -> str:
        """``files`` or ``spark``; of entries alone ``driver`` or ``spark``."""
        return "spark" if self.reason else "driver" if self.alone else "files"

    def as_dict(self) -> dict[str, str | None]:
        """The same for machines."""
        return {"by": self.by, "reason": self.reason or None}

    def __str__(self) -> str:
        what = "entries are committed" if self.alone else "rows land"
        if self.reason:
            return f"{what} through Spark: {self.reason}"
        return f"{what} by the driver" if self.alone else f"{what} as files"


AS_FILES = Way()
ELSEWHERE = "the table is not in a folder of this machine"
UNPINNED = "PYSPARK_PIN_THREAD is false"
"""Why the driver does not commit to a table by itself."""


def way_of(pipeline: Pipeline, others: Sequence[str], elsewhere: str = "") -> Way:
    """How the commits of batches are made, as far as the configuration tells.

    ``others`` are pipelines that write the table, too. ``elsewhere``: why the driver cannot commit
    by itself where the table is, in a clause; empty: it can.
    """
    if pipeline.shape.sends:
        return way_of_entries(pipeline, others, elsewhere)
    return Way(_first(_asked(pipeline), _of_rows(pipeline), elsewhere, _shared(others)))


def way_of_entries(pipeline: Pipeline, others: Sequence[str], elsewhere: str = "") -> Way:
    """The same of commits that bring no rows, whatever lands the rows."""
    return Way(_first(_asked(pipeline), elsewhere, _shared(others)), alone=True)


def _asked(pipeline: Pipeline) -> str:
    return "target.commit says so" if pipeline.target.commit is Commit.SPARK else ""


def _of_rows(pipeline: Pipeline) -> str:
    if pipeline.shape.keyed:
        return f"mode {pipeline.target.mode} does more than add rows"
    return f"{pipeline.made_by} makes the rows" if pipeline.made_by else ""


def _shared(others: Sequence[str]) -> str:
    # Commits of one exact version would be in each other's way in each batch.
    several = f"{', '.join(others)} write{'s' if len(others) == 1 else ''} the table, too"
    return several if others else ""


def _first(*reasons: str) -> str:
    return next(filter(None, reasons), "")


def way_into(known: Way, table: Definition | None, quarantine: Definition | None = None) -> Way:
    """The same, as far as the tables tell, which may not exist yet."""
    if known.reason:
        return known
    for each, prefix in ((table, ""), (quarantine, "of the quarantine, ")):
        reason = "" if each is None else why_not(each)
        if reason:
            return replace(known, reason=prefix + reason)
    return known
