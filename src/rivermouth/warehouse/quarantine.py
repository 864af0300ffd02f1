"""The quarantine table of a target: bad records, raw, with place and reason.

Written *ahead* of the commit that accounts for them and tagged with its id: a row counts
only if that commit stands in the ledger. So a crash in between neither loses nor doubles.

Columns: commit STRING, pipeline STRING, sequence BIGINT, topic STRING, partition INT,
offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, code STRING, reason STRING,
quarantined_at TIMESTAMP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from rivermouth.debug.failpoints import reach
from rivermouth.errors import BatchFailed
from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.address import Address
from rivermouth.warehouse.creation import make_table

COLUMNS = (
    "commit STRING, pipeline STRING, sequence BIGINT, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, code STRING, reason STRING, "
    "quarantined_at TIMESTAMP"
)
KAFKA_FIELDS = ("topic", "partition", "offset", "timestamp")


def create_quarantine(session: SparkSession, address: Address) -> None:
    """Create the table, if missing. In a catalog a write that creates a table counts nothing."""
    make_table(session, address, COLUMNS)


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine at ``address``; the first bad record creates it, if nothing else has.

    ``reasons`` say what the codes of the pipeline's records mean, see ``Format.all_reasons``.
    ``make`` creates it, where pipelines may do that at the same time: each of their writes would.
    """

    address: Address
    reasons: Mapping[str, str]
    make: Callable[[], object] = lambda: None

    def write(self, bad: DataFrame, plan: CommitPlan, seen: int | None, before: int = 0) -> None:
        """See ``write.landing.Quarantine``."""
        self.make()
        kafka = F.col("_kafka")
        rows = bad.select(
            F.lit(plan.commit).alias("commit"),
            F.lit(plan.draft.pipeline).alias("pipeline"),
            F.lit(plan.sequence).cast("bigint").alias("sequence"),
            *(kafka.getField(name).alias(name) for name in KAFKA_FIELDS),
            "key",
            "value",
            "code",
            self._reason().alias("reason"),
            F.current_timestamp().alias("quarantined_at"),
        )
        observation = Observation()
        # One file, but not one task that reads and decodes the whole batch: only bad rows move.
        one = rows.repartition(1).observe(observation, F.count(F.lit(1)).alias("written"))
        writer = one.write.mode("append")
        said = f"rivermouth quarantine of commit {plan.commit}"
        self.address.write(writer.option("userMetadata", said))
        reach("P12")
        if seen is None:
            return
        written = observation.get.get("written")
        if seen != written:  # a server may lose what it observed, or count a stage twice
            written = self._written(bad.sparkSession, plan) - before
        if seen != written:
            raise BatchFailed(
                "Kafka gave other bad records when the range was read again",
                where=plan.draft.pipeline,
                expected=f"{seen} records",
                found=f"{written} records",
            )

    def _written(self, session: SparkSession, plan: CommitPlan) -> int:
        """How many rows of this commit there are, by a query of its own."""
        return self.address.read(session).where(F.col("commit") == plan.commit).count()

    def _reason(self) -> Column:
        texts = [F.lit(text) for pair in self.reasons.items() for text in pair]
        return F.coalesce("reason", F.create_map(*texts)[F.col("code")])
