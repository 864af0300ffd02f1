"""A topic as a sink, by Spark's own writer: it fails where Kafka does not acknowledge a record."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.protocol.commits import CommitPlan
from rivermouth.write.landing import Site

ID_HEADER = "rm-id"
"""The header that tells a record from all others: ``pipeline/topic/partition/offset``."""
# To the microsecond: by itself Spark writes milliseconds.
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_ACKNOWLEDGED = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.allow.auto.create.topics": "false",
}


class KafkaSink:
    """Sends each row as JSON, under the message key of its record. See ``Sink``."""

    def __init__(self, site: Site) -> None:
        if site.config is None or site.config.target.kafka is None:
            raise TypeError("the Kafka sink needs a topic")
        self._options = {**site.kafka, **_ACKNOWLEDGED, "topic": site.config.target.kafka}
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = (
            F.col("key"),
            F.to_json("row", _AS_JSON).alias("value"),
            F.array(_identifier(site.config.ledger_name)).alias("headers"),
        )

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """See ``Sink.send``."""
        del plan
        good.select(*self._columns).write.format("kafka").options(**self._options).save()


def _identifier(pipeline: str) -> Column:
    kafka = F.col("_kafka")
    parts = (kafka.getField(each).cast("string") for each in ("topic", "partition", "offset"))
    text = F.concat_ws("/", F.lit(pipeline), *parts)
    return F.struct(F.lit(ID_HEADER).alias("key"), text.cast("binary").alias("value"))
