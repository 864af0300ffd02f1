"""Looking at Kafka while a batch is read: the batch waits for what it says before its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from rivermouth.protocol.offsets import OffsetRange, TopicPartition

Seen = TypeVar("Seen")


@contextmanager
def beside(look: Callable[[], Seen]) -> Iterator[Callable[[], Seen]]:
    """``look`` goes on in a thread of its own; what the block is given waits for what it returns.

    The block ends when ``look`` has ended. If it fails and ``look`` has failed, too, that is
    raised: a topic that is gone may well be why it cannot be read.
    """
    with ThreadPoolExecutor(1, "kafka") as threads:
        looking = threads.submit(look)
        try:
            yield looking.result
        except Exception:
            looking.result()
            raise


def leader_changed(
    ranges: Iterable[OffsetRange],
    before: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, int],
) -> bool:
    """Whether a partition of ``ranges`` has another leader epoch ``now`` than ``before``.

    What was read in between may be of a log that was cut since.
    """
    read = (each.topic_partition for each in ranges)
    return any(each in before and now.get(each, before[each]) != before[each] for each in read)
