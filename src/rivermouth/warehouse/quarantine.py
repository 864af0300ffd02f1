"""The quarantine: the table of bad records beside a target.

Bad records are written *ahead* of the commit that accounts for them, under its id: a row counts
only if that commit is in the ledger. So a crash in between neither loses nor doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rivermouth.debug import reach
from rivermouth.errors import BatchFailed
from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.tables import Address, literal
from rivermouth.warehouse.ports import ATTEMPTS, Attempts
from rivermouth.warehouse.tables import make_table

if TYPE_CHECKING:  # nothing of Spark is loaded before it is needed
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = (
    "commit STRING, pipeline STRING, sequence BIGINT, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, code STRING, reason STRING, "
    "quarantined_at TIMESTAMP"
)
KAFKA_FIELDS = ("topic", "partition", "offset", "timestamp")


def create_quarantine(
    session: SparkSession, address: Address, attempts: Attempts = ATTEMPTS
) -> None:
    """Create the table, if missing. In a catalog a write that creates a table counts nothing."""
    make_table(session, address, COLUMNS, attempts=attempts)


def check_written(plan: CommitPlan, seen: int, written: int) -> None:
    """Raise BatchFailed where others were written than were counted."""
    if seen != written:
        raise BatchFailed(
            "Kafka gave other bad records when the range was read again",
            where=plan.draft.pipeline,
            expected=f"{seen} records",
            found=f"{written} records",
        )


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine at ``address``; the first bad record creates it, if nothing else has.

    ``reasons`` say what the codes of the pipeline's records mean, see ``Format.all_reasons``.
    ``make`` creates it, where pipelines may do that at the same time: each of their writes would.
    """

    address: Address
    reasons: Mapping[str, str]
    make: Callable[[], object] = lambda: None

    def write(self, bad: DataFrame, plan: CommitPlan, seen: int) -> None:
        """Append the bad rows of a decoded batch under the plan's commit id.

        ``seen`` is how many there were. Raises BatchFailed where others were written: Kafka has
        deleted records between two reads of one range.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

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
        note = f"rivermouth quarantine of commit {plan.commit}"
        self.address.write(writer.option("userMetadata", note))
        reach("P12")
        written = observation.get.get("written")
        if seen != written:  # a server may lose what it observed, or count a stage twice
            there = self.address.read(bad.sparkSession)
            written = there.where(f"commit = {literal(plan.commit)}").count()
        check_written(plan, seen, written)

    def _reason(self) -> Column:
        from pyspark.sql import functions as F

        texts = [F.lit(text) for pair in self.reasons.items() for text in pair]
        return F.coalesce("reason", F.create_map(*texts)[F.col("code")])
