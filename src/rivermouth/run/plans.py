"""What the next run would do, and what would become of records, as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rivermouth.operate.plan import PipelinePlan, RunPlan
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.run.text import failure, number, text_table, wrapped

_SHOWN = 10
"""So many partitions are shown of each pipeline; ``--json`` has all."""
_OPENINGS = {
    "discovery": "first records where its partitions start",
    "loss": "first records what Kafka has deleted",
    "heartbeat": "first writes its position again, before the log is cleaned up",
}


def plan_text(found: RunPlan) -> str:
    """A paragraph for each pipeline, at most 80 columns wide; what fails is last in each."""
    return "\n\n".join("\n".join(_paragraph(each)) for each in found.pipelines)


def _paragraph(each: PipelinePlan) -> Iterator[str]:
    if each.error is not None:
        yield failure(each.name, each.error)
        return
    yield wrapped(f"{each.name}: {_does(each)}", "  ", "")
    for statement in each.statements:
        yield wrapped(statement, "  ")
    if each.lost:
        spans = sum(span.span for span in each.lost)
        yield wrapped(f"{number(spans)} offsets are lost: Kafka has deleted their records", "  ")
    if each.ranges:
        yield _partitions(each.ranges)
    if len(each.ranges) > _SHOWN:
        yield f"  and {len(each.ranges) - _SHOWN:,} more partitions"


def _does(each: PipelinePlan) -> str:
    batches = f"{each.batches:,} batch{'' if each.batches == 1 else 'es'}"
    reads = f"reads {each.offsets:,} offsets in {batches}" if each.offsets else "reads nothing"
    opening = [] if each.opening is None else [_OPENINGS[each.opening]]
    way = [] if each.way is None else [str(each.way)]
    return "; ".join([each.state, *opening, f"{reads}, into {each.table}", *way])


def _partitions(ranges: tuple[OffsetRange, ...]) -> str:
    rows = [
        (
            each.topic,
            *map(number, (each.partition, each.from_offset, each.until_offset, each.span)),
        )
        for each in ranges[:_SHOWN]
    ]
    headers = ("topic", "partition", "from", "until", "offsets")
    return text_table(headers, rows, numbers=(1, 2, 3, 4))


def preview_table(found: Sequence[Mapping[str, Any]]) -> str:
    """The rows that records make beside the reasons why others are bad, 80 columns wide."""
    rows = [_previewed(each) for each in found]
    bad = sum("bad" in each for each in found)
    none = sum(each.get("rows") == [] for each in found)
    table = text_table(("record", "row", "quarantine"), rows)
    sums = f"{len(found):,} records: {len(found) - bad - none:,} accepted, {bad:,} quarantined"
    return f"{table}\n{sums}{f', {none:,} without a row' if none else ''}"


def _previewed(each: Mapping[str, Any]) -> tuple[str, str, str]:
    place = f"{each['topic']}-{each['partition']}\n{each['offset']:,}"
    if "bad" in each:
        raw = each.get("value", each.get("value_base64"))
        return place, "" if raw is None else str(raw), each["bad"]
    made = (json.dumps(row, ensure_ascii=False, default=str) for row in each["rows"])
    return place, "\n".join(made) or "no row", ""
