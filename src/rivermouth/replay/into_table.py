"""A replay into another table: the rows of some ranges, as the pipeline would write them.

The table is made by the first replay into it, and belongs to one pipeline; no run writes it. Each
replay is one commit, with a ``txn`` that follows from the pipeline and the ranges. So the same
replay adds nothing the second time, also after a kill.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Config, Pipeline, TableName
from rivermouth.config.registry import resolve
from rivermouth.debug import listed, reach
from rivermouth.errors import ReplayRefused
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.replay.ranges import merged
from rivermouth.replay.report import RangeRead, Replayed, ReplayPlan
from rivermouth.replay.request import Bound, ReplayFacts, decoded
from rivermouth.run.assembly import Assembly
from rivermouth.spark.tables import literal, table_property
from rivermouth.storage.lake import in_bucket
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.tables import check_target, create_by_commit, create_target, no_rows
from rivermouth.write.evaluation import grouped_counts
from rivermouth.write.files.plain_rows import append
from rivermouth.write.rows import Keyed, Plain, Rows, without_overflow

OWNER = "rivermouth.replay"
"""The property of a table that a replay made: the pipeline."""
APP = "rivermouth-replay/"
"""What the ``txn`` of such a commit begins with; a ledger's begins with another word."""


class IntoTable:
    """One replay into the table ``into``."""

    def __init__(self, shared: Assembly, at: ReplayFacts, into: TableName) -> None:
        self._shared = shared
        self._at = at
        self._into = into
        self._address = shared.warehouse.address(into)
        self._session = shared.session
        store = None if shared.lake is None else shared.lake.store(into)
        # In a folder Spark writes it; in an object store it does not.
        self._store = store if in_bucket(store) else None

    def replay(
        self, begin: Bound, end: Bound | None, agree: Callable[[ReplayPlan], bool]
    ) -> Replayed:
        """Show to ``agree`` what would be added, and add it if it says so."""
        pipeline = self._at.pipeline
        ranges = self._ranges(begin, end)
        rows: Rows = resolve(pipeline.shape.changes)(pipeline)
        id_ = replay_id(self._at, ranges)
        plain = isinstance(rows, Plain)
        there = self._check_fits(id_, ranges, plain=plain)
        with ExitStack() as resources:
            found = resources.enter_context(decoded(self._shared, pipeline.name, ranges))
            batch = without_overflow(found, no_rows(self._session, pipeline), rows)
            read = RangeRead.of(ranges, grouped_counts(batch, ranges))
            made = _made(batch.where("code IS NULL"), rows)
            number = sum(each.records - each.bad for each in read)
            if not plain:
                made = made.localCheckpoint()
                number = 0 if there else made.count()
            inserted = 0 if there else number
            plan = ReplayPlan(pipeline.name, str(self._into), read, inserted, there=there)
            if not agree(plan) or there:
                return Replayed(plan, written=False)
            resources.enter_context(self._shared.warehouse.hold(self._into))
            self._check_fits(id_, ranges, plain=plain)  # others may have been here meanwhile
            return Replayed(plan, written=self._write(made, id_, ranges))

    def _ranges(self, begin: Bound, end: Bound | None) -> tuple[OffsetRange, ...]:
        at = self._at
        begins = {each: mark.low for each, mark in at.facts.watermarks.items()}
        ranges = merged(each for each in at.asked(begin, end, begins) if each.span)
        if not ranges:
            raise ReplayRefused(
                "there is nothing to replay",
                where=at.where,
                expected="ranges that hold an offset",
                remedy="Correct --from or --to",
            )
        return ranges

    def _check_fits(self, id_: str, ranges: Sequence[OffsetRange], *, plain: bool) -> bool:
        """Whether the table has the rows already. Raises ReplayRefused for a table that is not for
        them.
        """
        owner = self._owner()
        if owner is None:
            return False
        where, name = str(self._into), self._at.pipeline.ledger_name
        if owner != name:
            raise ReplayRefused(
                "the table was not made by a replay of this pipeline",
                where=where,
                expected=f"a new table, or one with the property {OWNER} = {name}",
                found=f"that of {owner}" if owner else "a table of somebody else",
                remedy="Choose another table",
            )
        check_target(self._session, self._at.pipeline, self._address)
        if self._recorded(id_) is not None:
            return True
        table = self._address.read(self._session)
        twice = table.where(_within(ranges)) if plain else table
        if twice.limit(1).collect():
            raise ReplayRefused(
                "the table holds rows of these offsets already, by another replay"
                if plain
                else "the table holds the rows of another replay, and each key may have one row",
                where=where,
                expected="no such row",
                remedy="Choose another table",
            )
        return False

    def _owner(self) -> str | None:
        """The pipeline whose replays made the table; empty: none; None: there is no table."""
        if self._store is not None:
            there = DeltaLog(self._store).definition()
            return None if there is None else there.properties.get(OWNER, "")
        try:
            return table_property(self._session, self._address, OWNER)
        except AnalysisException:
            return None

    def _recorded(self, id_: str) -> str | None:
        """What the commit of the replay with this id says; None: it is not in the log."""
        if self._store is not None:
            said = (each.user_metadata or "" for each in DeltaLog(self._store).commits())
            return next((each for each in said if id_ in each), None)
        shown = self._session.sql(f"DESCRIBE HISTORY {self._address.sql}")
        texts = shown.where(F.col("userMetadata").contains(id_)).select("userMetadata").collect()
        return str(texts[0]["userMetadata"]) if texts else None

    def _write(self, rows: DataFrame, id_: str, ranges: Sequence[OffsetRange]) -> bool:
        """Make the commit, unless it is there; whether it is this one."""
        pipeline = self._at.pipeline
        reach("P2")
        if self._store is not None:
            create_by_commit(_owned(pipeline), self._store)
        else:
            create_target(self._session, _owned(pipeline), self._address)
        commit = str(uuid.uuid4())
        facts = {"replay": id_, "commit": commit, "pipeline": pipeline.ledger_name}
        text = json.dumps({**facts, "ranges": listed(ranges)()})
        options = {"txnAppId": f"{APP}{id_}", "txnVersion": "1", "userMetadata": text}
        reach("P3")
        if self._store is not None:
            append(rows, self._store, options["txnAppId"], text)
        else:
            self._address.write(rows.write.mode("append").options(**options))
        reach("P6")
        return commit in (self._recorded(id_) or "")


def check_free(config: Config, into: TableName) -> None:
    """Raise ReplayRefused for a table that pipelines, or we ourselves, write."""
    taken = {each.target.table: name for name, each in config.pipelines.items()}
    taken |= {table.quarantine: f"{name}, as its quarantine" for table, name in taken.items()}
    writer = taken.get(into, "rivermouth itself" if into.schema == "rivermouth" else "")
    if writer:
        raise ReplayRefused(
            "a replay goes into a table that no pipeline writes",
            where=str(into),
            found=f"the table of {writer}",
            remedy="Choose another table",
        )


def replay_id(at: ReplayFacts, ranges: Sequence[OffsetRange]) -> str:
    """What names a replay: the pipeline, and the ranges of these very topics."""
    ids = sorted((each, at.facts.topics[each]) for each in {one.topic for one in ranges})
    named = [at.pipeline.ledger_name, at.facts.cluster, ids, [*map(str, ranges)]]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]


def _owned(pipeline: Pipeline) -> Pipeline:
    """The pipeline, whose table is marked as made by a replay."""
    properties = {**pipeline.target.properties, OWNER: pipeline.ledger_name}
    target = pipeline.target.model_copy(update={"properties": properties})
    return pipeline.model_copy(update={"target": target})


def _made(good: DataFrame, rows: Rows) -> DataFrame:
    """The rows that good records leave in an empty table."""
    if isinstance(rows, Plain):
        return good.select(*rows.columns, "_kafka")
    if not isinstance(rows, Keyed):
        raise TypeError("a replay writes the rows of a table")
    changes = rows.fold(good)
    changed = changes.select(F.struct(*changes.columns).alias("s")).where(rows.insert)
    return changed.select(*(F.expr(text).alias(name) for name, text in rows.inserts.items()))


def _within(ranges: Sequence[OffsetRange]) -> str:
    """SQL: whether a row is of a record in one of the ranges."""
    return " OR ".join(
        f"(_kafka.topic = {literal(each.topic)} AND _kafka.partition = {each.partition}"
        f" AND _kafka.offset >= {each.from_offset} AND _kafka.offset < {each.until_offset})"
        for each in ranges
    )
