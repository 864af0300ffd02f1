"""A table in the folder of a bench, the batches that land in it, and what is there then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import CommitPlan, Outcome, classify, entry_of
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.tables import VECTORS, add_tombstone_column, create_target
from rivermouth.write.landing import Landing, RawBatch, Site
from rivermouth.write.landings.driver_commits import record
from rivermouth.write.landings.files import FilesLanding
from rivermouth.write.landings.merge import Merge
from rivermouth.write.landings.replace_using import ReplaceUsing
from rivermouth.write.rows import Keyed
from tests.landing import land
from tests.reading import rows_at
from tests.spark.conftest import Bench, RawRow
from tests.spark.files_table import InFolder

Decode = Callable[[DataFrame], DataFrame]


def by_merge(site: Site) -> Landing:
    return Merge(site)


def by_replace(site: Site, *, marked: bool = True, vectors: bool = False) -> Landing:
    """Without the trial of the engine, which needs a catalog."""
    assert isinstance(site.rows, Keyed)
    return ReplaceUsing(site, site.rows, marked=marked, vectors=vectors)


LANDINGS: dict[str, Callable[[Site], Landing]] = {
    "files": FilesLanding,
    "MERGE": by_merge,
    "replaceUsing": by_replace,
}
WAYS = (*LANDINGS,)


@dataclass
class BatchTable(InFolder):
    """The table of a pipeline, and how its batches land."""

    site: Site
    landing: Landing
    plans: list[CommitPlan] = field(default_factory=list)

    @property
    def pipeline(self) -> Pipeline:
        return self.site.pipeline

    @property
    def position(self) -> Position:
        return self.plans[-1].draft.position if self.plans else Position()

    def plan(self, rows: Sequence[RawRow], sequence: int | None = None) -> CommitPlan:
        """That of the next commit, which follows on the newest one."""
        number = len(self.plans) + 1 if sequence is None else sequence
        return replace(self.bench.plan(number, rows, self.position), base=self.version)

    def land(
        self,
        rows: Sequence[RawRow],
        plan: CommitPlan | None = None,
        decode: Decode | None = None,
        raw: DataFrame | None = None,
    ) -> CommitPlan:
        """Land a batch; ``raw`` are its rows as Spark has them."""
        plan = plan or self.plan(rows)
        given = self.bench.raw(rows) if raw is None else raw
        land(self.landing, RawBatch(given, decode or decoder(self.pipeline)), plan)
        self.plans.append(plan)
        return plan

    def record(self, plan: CommitPlan | None = None) -> CommitPlan:
        """Commit an entry alone."""
        plan = plan or self.plan([])
        record(self.site, plan)
        self.plans.append(plan)
        return plan

    @property
    def entry(self) -> Entry:
        """The entry of the newest commit."""
        entry = entry_of([*self.log.commits()][-1], "p")
        assert entry is not None
        return entry

    def outcome(self, plan: CommitPlan) -> Outcome:
        return classify(plan, self.log.commits())

    def rows(self) -> list[dict[str, Any]]:
        return rows_at(self.path)

    def bad(self, commit: str = "") -> dict[tuple[int, int], str]:
        """Codes of the records in quarantine by partition and offset; those of a commit."""
        rows = [e for e in self.quarantine() if not commit or e["commit"] == commit]
        found = {(each["partition"], each["offset"]): each["code"] for each in rows}
        assert len(found) == len(rows), "a record twice"
        return found

    def quarantine(self) -> list[dict[str, Any]]:
        path = f"{self.path}_quarantine"
        return rows_at(path) if DeltaTable.is_deltatable(path) else []


def batch_table(
    bench: Bench,
    pipeline: Pipeline,
    make: Callable[[Site], Landing],
    name: str = "orders",
    **site: Any,
) -> BatchTable:
    """A new table, with its landing."""
    at = replace(bench.site(pipeline, name), **site)
    create_target(bench.spark, pipeline, at.address)
    return BatchTable(bench, name, at, make(at))


def keyed_table(
    bench: Bench, pipeline: Pipeline, way: str = "MERGE", *, vectors: bool = False, **site: Any
) -> BatchTable:
    """A new table of orders, with the landing of that way."""
    if way != "files" and not vectors:
        off = {VECTORS: "false", **pipeline.target.properties}
        target = pipeline.target.model_copy(update={"properties": off})
        pipeline = pipeline.model_copy(update={"target": target})

    def make(at: Site) -> Landing:
        assert isinstance(at.rows, Keyed)
        if way == "files":
            return FilesLanding(at)
        if way == "MERGE":
            return by_merge(at)
        marked = at.rows.delete is not None
        if marked:
            add_tombstone_column(bench.spark, at.address)
        return by_replace(at, marked=marked, vectors=vectors)

    return batch_table(bench, pipeline, make, **site)
