"""Some records through the whole chain of a pipeline, and what would become of each.

The records are decoded as the tasks do it, without Spark. Where own code makes the rows, it is
called with the good records, in a session; nothing is written.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any

from rivermouth.config import Config, Secrets
from rivermouth.operate.facts import answers, connected
from rivermouth.operate.peek import From, Peek, peek
from rivermouth.operate.sql import json_value
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.spark.session import Spark

Record = dict[str, Any]
Session = Callable[[], AbstractContextManager[Spark]]


def preview(
    config: Config, pipeline: str, most: int, begin: From, secrets: Secrets, session: Session
) -> list[Record]:
    """The newest ``most`` records of the topics of a pipeline (0: all), or those from where it
    begins.

    Each is a JSON object: its place, ``timestamp`` and ``key``; and ``rows``, which it makes in the
    table, or ``bad`` with its raw ``value``. Raises SourceError, and TransformFailed for own code.
    """
    kafka = connected(config, secrets)
    [found] = answers([config.pipelines[pipeline]], kafka, {}).values()
    records = [
        each
        for topic in found.pipeline.source.topics
        for each in peek(config, Peek(topic, most or None, begin, None, found.pipeline), secrets)
        if found.pipeline.source.topics.has(topic, each["partition"])
    ]
    records.sort(key=lambda each: (each["timestamp"], _place(each)))
    chosen = records[-most:] if begin == From() else records[: most or None]
    good = [each for each in chosen if "bad" not in each]
    if found.pipeline.made_by and good:
        with session() as spark:
            made = _made(config, pipeline, good, secrets, spark)
        return [_with_rows(each, made.get(_place(each), [])) for each in chosen]
    return [_with_rows(each, [row] if (row := each.get("value")) else []) for each in chosen]


def _place(record: Record) -> tuple[str, int, int]:
    return record["topic"], record["partition"], record["offset"]


def _with_rows(record: Record, rows: Sequence[Any]) -> Record:
    if "bad" in record:
        return record
    facts = {name: each for name, each in record.items() if name not in ("value", "no_row")}
    return {**facts, "rows": [*rows]}


def _spans(places: Iterable[tuple[str, int, int]]) -> Iterator[OffsetRange]:
    """One range of each partition, over all of these places, which are in order."""
    for (topic, number), found in groupby(places, key=lambda each: each[:2]):
        offsets = [offset for _, _, offset in found]
        yield OffsetRange(TopicPartition(topic, number), offsets[0], offsets[-1] + 1)


def _made(
    config: Config, pipeline: str, good: Iterable[Record], secrets: Secrets, spark: Spark
) -> dict[tuple[str, int, int], list[Any]]:
    """The rows that own code makes of these records, by their places."""
    from rivermouth.protocol.batches import Batch
    from rivermouth.replay.records import read
    from rivermouth.write.evaluation import refusing
    from rivermouth.write.transform import Transform

    ranges = tuple(_spans(sorted(map(_place, good))))
    decoded = read(spark.session(), config, ranges, pipeline, secrets=secrets)
    own = Transform(config.pipelines[pipeline])
    batch = Batch(config.pipelines[pipeline].ledger_name, 0, str(uuid.uuid4()), ranges)
    found = defaultdict[tuple[str, int, int], list[Any]](list)
    rows = own.made(decoded.where("code IS NULL").select(refusing(), "row.*"), batch).rows
    with own.blamed(batch):
        for row in rows.toArrow().to_pylist():
            kafka = row.pop("_kafka")
            place = (kafka["topic"], kafka["partition"], kafka["offset"])
            found[place].append(json_value(row))
    return found
