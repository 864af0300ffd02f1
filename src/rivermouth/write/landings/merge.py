"""Changes by key, through one MERGE that carries ``txn`` and entry by session confs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Observation

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.spark.address import Address, quoted
from rivermouth.write.counts import applied, counted, counters, quarantined
from rivermouth.write.entry import session_confs, statement_confs
from rivermouth.write.landing import Site
from rivermouth.write.rows import Keyed
from rivermouth.write.soft_delete import TOMBSTONE, has_mark

MATERIALIZE_SOURCE = "spark.databricks.delta.merge.materializeSource"
# A batch without a good record folds to nothing; adaptive execution would then drop the plan
# and, with it, the counts of the bad ones.
_ADAPTIVE_EXCLUDES = "spark.sql.adaptive.optimizer.excludedRules"
_DROP_OF_EMPTY_PLANS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
BROADCAST_RECORDS_MAX = 200_000
_SOURCE = "rivermouth_source"


class Merge:
    """Folds a batch, materialises the changes once, and merges them. See ``Landing``."""

    def __init__(self, site: Site) -> None:
        if not isinstance(site.rows, Keyed):
            raise TypeError("a MERGE lands changes by key")
        self._site = site
        self._rows = site.rows
        marked = has_mark(site.session, site.address)
        self._statement = merge_statement(site.address, site.rows, marked=marked)

    def land(self, decoded: DataFrame, plan: CommitPlan) -> None:
        """See ``Landing.land``. The counts are always known: the fold comes first."""
        ranges = plan.draft.ranges
        observation = Observation()
        observed = decoded.observe(observation, *counters(ranges))
        folded = self._rows.fold(observed.where("code IS NULL"))
        with session_confs(decoded.sparkSession, {_ADAPTIVE_EXCLUDES: _DROP_OF_EMPTY_PLANS}):
            # The one materialisation: MERGE scans its source twice, and Kafka is no place for that.
            changes = folded.localCheckpoint()
        counts = counted(ranges, observation.get)
        if quarantined(counts):
            self._site.quarantine.write(decoded.where("code IS NOT NULL"), plan, counts)
        small = applied(counts) <= BROADCAST_RECORDS_MAX
        self._merge(changes.hint("broadcast") if small else changes, plan.entry(counts))

    def _merge(self, changes: DataFrame, entry: Entry) -> None:
        session = changes.sparkSession
        changes.createOrReplaceTempView(_SOURCE)
        with session_confs(session, {**statement_confs(entry), MATERIALIZE_SOURCE: "none"}):
            session.sql(self._statement)


def merge_statement(address: Address, rows: Keyed, *, marked: bool) -> str:
    """The MERGE of changes into the table. Where rows may be marked as deleted (``marked``),
    those count as absent.
    """
    on = " AND ".join(f"t.{quoted(key)} = s.key_columns.{quoted(key)}" for key in rows.keys)
    clauses = [] if rows.delete is None else [f"WHEN MATCHED AND {rows.delete} THEN DELETE"]
    if marked:
        again = {**rows.inserts, TOMBSTONE: "NULL"}
        clauses.append(
            f"WHEN MATCHED AND t.{TOMBSTONE} AND ({rows.insert}) THEN UPDATE SET {_set(again)}"
        )
    if rows.update is not None:
        clauses.append(f"WHEN MATCHED AND ({rows.update}) THEN UPDATE SET {_set(rows.updates)}")
    names = ", ".join(quoted(each) for each in rows.inserts)
    values = ", ".join(rows.inserts.values())
    clauses.append(f"WHEN NOT MATCHED AND {rows.insert} THEN INSERT ({names}) VALUES ({values})")
    return f"MERGE INTO {address.sql} t USING {_SOURCE} s ON {on} " + " ".join(clauses)


def _set(values: Mapping[str, str]) -> str:
    return ", ".join(f"t.{quoted(name)} = {value}" for name, value in values.items())
