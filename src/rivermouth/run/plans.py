"""What the next run would do, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

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
