"""The records that wait for pipelines: since when, and how long Kafka keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rivermouth.errors import RivermouthError
from rivermouth.kafka.facts import AskTopic
from rivermouth.operate.facts import or_fault
from rivermouth.protocol.kafka_facts import Outlook, Retention, TimeLeft, time_left, unknown
from rivermouth.protocol.offsets import PartitionOffset

_FIRST_OF = (Outlook.BY_SIZE, Outlook.UNKNOWN, Outlook.KEPT)
"""Which of them counts for a pipeline, where no partition tells a time."""


@dataclass(frozen=True)
class Waiting:
    """``oldest_ms`` is the timestamp of the oldest record that waits, in ms since 1970 (None: not
    known). ``left`` is that of the partition whose next record Kafka deletes first.
    """

    oldest_ms: int | None
    left: TimeLeft

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        left = asdict(self.left)
        return {"since_ms": self.oldest_ms, "kept": left | {"outlook": self.left.outlook.value}}


def waiting(
    next_records: Mapping[str, Iterable[PartitionOffset]], kafka: AskTopic, now_ms: float
) -> dict[str, Waiting]:
    """What waits for each pipeline, by its name; those for which nothing does are left out.

    ``next_records`` are the offsets that each reads next, of partitions that have more. Kafka is
    asked for all of them at once. What it does not tell is unknown.
    """
    wanted = {name: sorted(each) for name, each in next_records.items()}
    every = {record for each in wanted.values() for record in each}
    if not every:
        return {}
    firsts = or_fault(lambda: kafka.first_timestamps(every))
    kept = or_fault(lambda: kafka.retentions({place.topic for place, _ in every}))
    return {name: _of(records, firsts, kept, now_ms) for name, records in wanted.items() if records}


def _of(
    records: Iterable[PartitionOffset],
    firsts: Mapping[PartitionOffset, int | None] | RivermouthError,
    kept: Mapping[str, Retention] | RivermouthError,
    now_ms: float,
) -> Waiting:
    if isinstance(firsts, RivermouthError):
        return Waiting(None, unknown(str(firsts)))
    found = {each: stamp for each in records if (stamp := firsts.get(each)) is not None}
    if not found:
        return Waiting(None, unknown("no record was read there in time"))
    oldest_ms = min(found.values())
    if isinstance(kept, RivermouthError):
        return Waiting(oldest_ms, unknown(str(kept)))
    left = [time_left(stamp, kept[place.topic], now_ms) for (place, _), stamp in found.items()]
    return Waiting(oldest_ms, min(left, key=_order))


def _order(left: TimeLeft) -> tuple[bool, float]:
    if left.seconds is not None:
        return False, left.seconds
    return True, _FIRST_OF.index(left.outlook)
