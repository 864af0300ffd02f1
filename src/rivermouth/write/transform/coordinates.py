"""The coordinates of made rows: each is of a record of the batch, and no record has two rows
unless the target says that it may.

They are checked while the rows are written, and a wrong one fails the job: nothing is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from rivermouth.formats.decoded import PLACE
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import literal

WRONG_ROW = "RM506: a row that the batch cannot have"


def checked(ranges: Sequence[OffsetRange], *, once: bool) -> Column:
    """``_kafka`` of a row; evaluating a wrong one fails the job.

    ``once``: it is also wrong if another row has it. That takes a shuffle.
    """
    inside = F.coalesce(F.expr(within(ranges)), F.lit(False))
    kafka = F.col("_kafka")
    found = F.when(~inside, refusal(WRONG_ROW, "_kafka is not that of a record of this batch"))
    if once:
        rows = F.expr("count(1) over (partition by _kafka.topic, _kafka.partition, _kafka.offset)")
        found = found.when(rows > 1, refusal(WRONG_ROW, "a record has several rows"))
    return found.otherwise(kafka).alias("_kafka")


def within(ranges: Sequence[OffsetRange]) -> str:
    """A condition: the coordinates lie in one of ``ranges``; null where its topic is not there.

    A partition is looked up by its number, so many of them cost no more than few.
    """
    by_topic: dict[str, dict[int, OffsetRange]] = defaultdict(dict)
    for each in ranges:
        by_topic[each.topic][each.partition] = each
    cases = [
        f"when {literal(topic)} then _kafka.offset >= {_bound(found, 'from_offset')}"
        f" and _kafka.offset < {_bound(found, 'until_offset')}"
        for topic, found in by_topic.items()
    ]
    return f"case _kafka.topic {' '.join(cases)} end" if cases else "false"


def _bound(ranges: dict[int, OffsetRange], name: str) -> str:
    numbers = range(max(ranges) + 1)
    bounds = (getattr(ranges[each], name) if each in ranges else None for each in numbers)
    listed = ("null" if each is None else f"{each}L" for each in bounds)
    return f"get(array({', '.join(listed)}), _kafka.partition)"


def refusal(what: str, why: str) -> Column:
    """Evaluating it fails the job, which tells place and time of the row, and no message key."""
    place = F.struct(*(F.col("_kafka").getField(each).alias(each) for each in PLACE))
    told = F.when(F.col("_kafka").isNotNull(), F.to_json(place))
    said = F.concat(F.lit(f"{what}: {why}: "), F.coalesce(told, F.lit("null")))
    return F.raise_error(said)
