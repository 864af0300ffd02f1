"""Which way the commits of a pipeline are made: by the driver, or through Spark; and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rivermouth.config import Commit, Pipeline
from rivermouth.write.files.known import Definition, why_not


@dataclass(frozen=True)
class Way:
    """How commits are made. ``reason``: why by Spark, in a clause; empty: by the driver.

    ``alone``: they carry entries alone, for a pipeline that sends; else rows, as files.
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


def way_of(pipeline: Pipeline, others: Sequence[str], *, folder: bool) -> Way:
    """As far as the configuration tells. ``others`` are pipelines that write the table, too.

    ``folder``: the table is in a folder of this machine, where the tasks run, too.
    """
    return Way(_why_spark(pipeline, others, folder=folder), pipeline.shape.sends)


def _why_spark(pipeline: Pipeline, others: Sequence[str], *, folder: bool) -> str:
    if pipeline.target.commit is Commit.SPARK:
        return "target.commit says so"
    if pipeline.shape.keyed:
        return f"mode {pipeline.target.mode} does more than add rows"
    if pipeline.made_by and not pipeline.shape.sends:
        return f"{pipeline.made_by} makes the rows"
    if not folder:
        return "the table is not in a folder of this machine"
    if others:
        # Spark's writer asks whether a version is there, and then renames its file to it.
        return f"{', '.join(others)} write{'s' if len(others) == 1 else ''} the table, too"
    return ""


def way_into(known: Way, table: Definition | None, quarantine: Definition | None = None) -> Way:
    """The same, as far as the tables tell, which may not exist yet."""
    if known.reason:
        return known
    for each, prefix in ((table, ""), (quarantine, "of the quarantine, ")):
        reason = "" if each is None else why_not(each)
        if reason:
            return replace(known, reason=prefix + reason)
    return known
