"""A topic as a sink, by Spark's own writer: it fails where Kafka does not acknowledge a record."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column as ConfiguredColumn
from rivermouth.config import Pipeline, Target
from rivermouth.protocol.commits import CommitPlan
from rivermouth.write.landing import Site

ID_HEADER = "rm-id"
"""The header that tells a record from all others: ``pipeline/topic/partition/offset``."""
# To the microsecond: by itself Spark writes milliseconds.
_TIMES = {
    "TIMESTAMP": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "TIMESTAMP_NTZ": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": _TIMES["TIMESTAMP"],
    "timestampNTZFormat": _TIMES["TIMESTAMP_NTZ"],
}
_ACKNOWLEDGED = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.allow.auto.create.topics": "false",
}


class KafkaSink:
    """Sends each row as JSON, under its own key or that of its record. See ``Sink``."""

    def __init__(self, site: Site) -> None:
        if site.config is None or site.config.target.kafka is None:
            raise TypeError("the Kafka sink needs a topic")
        target = site.config.target
        self.name = ", ".join(target.kafka or ())
        self._options = {**site.kafka, **_ACKNOWLEDGED}
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = (
            key_of(site.config).alias("key"),
            F.to_json("row", _AS_JSON).alias("value"),
            F.array(_identifier(site.config.ledger_name)).alias("headers"),
            _topic(target).alias("topic"),
            *_partition(target),
        )

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """See ``Sink.send``."""
        del plan
        good.select(*self._columns).write.format("kafka").options(**self._options).save()


def key_of(pipeline: Pipeline) -> Column:
    """The key to send: the one that was read, the text of a column, or several as JSON."""
    names = pipeline.target.message_key
    if not names:
        return F.col("key")
    columns = {each.name: each for each in pipeline.row_columns}
    return _made_of([columns[each] for each in names])


def _made_of(columns: Sequence[ConfiguredColumn]) -> Column:
    values = [F.col("row").getField(each.name) for each in columns]
    if len(columns) > 1:
        named = (value.alias(each.name) for each, value in zip(columns, values, strict=True))
        return F.to_json(F.struct(*named), _AS_JSON).cast("binary")
    [only], [value] = columns, values
    if only.kind in _TIMES:
        value = F.date_format(value, _TIMES[only.kind])
    return value if only.kind == "BINARY" else value.cast("string").cast("binary")


def _topic(target: Target) -> Column:
    """The only topic, or the one that the row names: no other one passes the checks before."""
    if target.topic_column is None:
        [only] = target.kafka or ()
        return F.lit(only)
    return F.col("row").getField(target.topic_column)


def _partition(target: Target) -> list[Column]:
    """The partition that the row names, null for the one of its key; none where the key decides."""
    if target.partition_column is None:
        return []
    return [F.col("row").getField(target.partition_column).cast("int").alias("partition")]


def _identifier(pipeline: str) -> Column:
    kafka = F.col("_kafka")
    parts = (kafka.getField(each).cast("string") for each in ("topic", "partition", "offset"))
    text = F.concat_ws("/", F.lit(pipeline), *parts)
    return F.struct(F.lit(ID_HEADER).alias("key"), text.cast("binary").alias("value"))
