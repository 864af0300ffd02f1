"""A replay in place: what was read since an entry is applied to the pipeline's table once more.

The table then holds, for each key of these records, the row that they leave. So a row that somebody
deleted or changed is put right, and a right one stays untouched. The ledger gets an entry that says
which ranges were applied, and moves no offset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from functools import partial

from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.errors import ReplayRefused
from rivermouth.protocol.commits import Purpose
from rivermouth.protocol.entry import Counts
from rivermouth.protocol.reapply import (
    WholeEntries,
    all_entries,
    recorded_begins,
    replay_draft,
    whole_entries,
)
from rivermouth.replay.report import RangeRead, Replayed, ReplayPlan
from rivermouth.replay.request import Bound, ReplayFacts, decoded
from rivermouth.run.assembly import Assembly
from rivermouth.run.committer import Committer
from rivermouth.run.steps import Steps
from rivermouth.storage.lake import in_bucket
from rivermouth.warehouse.ledger import Others
from rivermouth.warehouse.tables import check_target
from rivermouth.write.evaluation import applied, grouped_counts
from rivermouth.write.landings.merge import Merge
from rivermouth.write.rows import Keyed, row_changes

ELSEWHERE = "Replay into another table: --into SCHEMA.TABLE"


def check_alone(where: str, own: Collection[str], writers: Iterable[str]) -> None:
    """Raise ReplayRefused where others than ``own`` are among the writers of a table."""
    others = sorted({*writers} - {*own})
    if others:
        raise ReplayRefused(
            "other pipelines have written the table, too",
            where=where,
            expected="one pipeline",
            found=", ".join(others),
            remedy=ELSEWHERE,
        )


def check_counts(where: str, found: WholeEntries, counts: Counts) -> None:
    """Raise ReplayRefused where records decode differently than when they were read.

    There may be fewer of each kind: compaction has removed them.
    """
    for each, now in zip(found.ranges, counts, strict=True):
        then = None if found.counts is None else found.counts.get(each.topic_partition)
        if then and (now.applied > then.applied or now.quarantined > then.quarantined):
            raise ReplayRefused(
                f"records of {each} decode differently than when they were read",
                where=where,
                expected=f"at most {then.applied:,} good and {then.quarantined:,} bad",
                found=f"{now.applied:,} good and {now.quarantined:,} bad",
                remedy="Put the format and its settings back; or replay into another table:"
                " --into SCHEMA.TABLE",
            )


def check_all_there(where: str, found: WholeEntries, counts: Counts) -> None:
    """Raise ReplayRefused unless every record that was read is known to be there still.

    For a shape in which the first record of a key decides: compaction may have removed it.
    """
    if found.counts is None:
        raise ReplayRefused(
            "nobody can tell whether all records are there",
            where=where,
            expected="entries that count their records",
            found=f"some without counts, from entry {found.since} on",
            remedy=ELSEWHERE,
        )
    for each, now in zip(found.ranges, counts, strict=True):
        then = found.counts[each.topic_partition]
        if now != then:
            raise ReplayRefused(
                f"records of {each} are gone, and each may have been the first of its key",
                where=where,
                expected=f"{then.applied:,} good and {then.quarantined:,} bad",
                found=f"{now.applied:,} good and {now.quarantined:,} bad: is the topic compacted?",
                remedy=ELSEWHERE,
            )


def check_inserts(where: str, pipeline: Pipeline, found: WholeEntries, inserted: int) -> None:
    """Raise ReplayRefused where a row to insert may not be the newest by ``order_by``.

    A record that was read earlier may rank higher; of a row that is there the table tells it.
    """
    if inserted and pipeline.target.order_by and not found.earliest:
        raise ReplayRefused(
            f"{inserted:,} rows are missing, and an earlier record may be newer by order_by",
            where=where,
            expected="a replay of all that was ever read",
            found=f"one since entry {found.since}",
            remedy="Write --from earliest, if all can still be read; or replay into another table:"
            " --into SCHEMA.TABLE",
        )


class InPlace:
    """One replay in place; the table is ours to write."""

    def __init__(self, shared: Assembly, at: ReplayFacts) -> None:
        self._shared = shared
        self._at = at
        self._session: SparkSession = shared.session

    def replay(
        self, begin: Bound, end: Bound | None, agree: Callable[[ReplayPlan], bool]
    ) -> Replayed:
        """Show to ``agree`` what would change, and do that if it says so and rows would change."""
        at, pipeline = self._at, self._at.pipeline
        if in_bucket(self._shared.lake):
            raise ReplayRefused(
                "a replay in place is a MERGE of Spark, which commits nothing in an object store",
                where=at.where,
                remedy=ELSEWHERE,
            )
        self._check_alone()
        address = self._shared.warehouse.address(pipeline.target.table)
        check_target(self._session, pipeline, address)
        found = self._entries(begin, end)
        rows: Keyed = resolve(pipeline.shape.again or "")(pipeline, found.of_entries)
        with ExitStack() as resources:
            batch = resources.enter_context(decoded(self._shared, pipeline.name, found.ranges))
            counts = grouped_counts(batch, found.ranges)
            check_counts(at.where, found, counts)
            if pipeline.shape.reapply_needs_all:
                check_all_there(at.where, found, counts)
            changes = rows.fold(batch.where("code IS NULL")).localCheckpoint()
            plan = ReplayPlan(
                pipeline=pipeline.name,
                table=str(pipeline.target.table),
                ranges=RangeRead.of(found.ranges, counts),
                since=found.since,
                there=False,
                **row_changes(changes, address.read(self._session), rows),
            )
            check_inserts(at.where, pipeline, found, plan.inserted)
            if not agree(plan):
                return Replayed(plan, written=False)
            # A killed replay may have left the offsets table behind.
            ledger, coordinates = at.found.ledger, self._shared.coordinates(pipeline)
            accept = Purpose.REPLAY.value
            committer = Committer.opened(ledger, coordinates, at.found.to_project, accept=accept)
            if not plan.rows:
                return Replayed(plan, written=False)
            site = self._shared.site(pipeline, resources, coordinates.attempts, rows)
            draft = replay_draft(committer.history, at.newest, ledger.table, found)
            commit = committer.plan(Purpose.REPLAY, draft)
            stage = partial(Merge(site).stage_changes, changes, applied(counts))
            committer.commit(commit, Steps(stage))
        return Replayed(plan, written=True, sequence=commit.sequence)

    def _check_alone(self) -> None:
        """Refuse where others write rows of the table: nobody could tell whose is newer."""
        pipeline = self._at.pipeline
        table, name = pipeline.target.table, pipeline.ledger_name
        log = self._shared.warehouse.ledger(pipeline).log
        writers = [each.name for each in self._shared.config.writers(table)]
        writers += [each.pipeline for each in Others(log, name).read()]
        check_alone(self._at.where, {pipeline.name, name}, writers)

    def _entries(self, begin: Bound, end: Bound | None) -> WholeEntries:
        at = self._at
        asked = None
        if not begin.is_earliest or end is not None:
            asked, position = at.asked(begin, end, recorded_begins(at.entries)), at.position
            ends = ((each, position.get(each.topic_partition) or 0) for each in asked)
            early = [each for each, stands in ends if each.until_offset < stands]
            if early:
                raise ReplayRefused(
                    "a replay in place ends where the pipeline stands",
                    where=at.where,
                    expected="no --to",
                    found=f"an end at {early[0].until_offset} of {early[0].topic_partition}",
                    remedy="Leave out --to: later records may have deleted or replaced rows of"
                    " these; or replay into another table: --into SCHEMA.TABLE",
                )
        asked = None if begin.is_earliest else asked
        taken = all_entries if at.pipeline.shape.reapply_needs_all else whole_entries
        return taken(at.entries, at.pipeline, at.facts.watermarks, asked)
