"""Looking at Kafka while a batch is read: the batch waits for what it says before its commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
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
    told: Future[Seen] = Future()
    # Not by an executor: that starts no thread once the interpreter's main thread has ended.
    thread = threading.Thread(target=_tell, args=(told, look), name="kafka")
    thread.start()
    try:
        yield told.result
    except Exception:
        told.result()
        raise
    finally:
        thread.join()


def _tell(told: Future[Seen], look: Callable[[], Seen]) -> None:
    try:
        told.set_result(look())
    except BaseException as fault:  # whoever waits has to hear of it
        told.set_exception(fault)


def leader_changed(
    ranges: Iterable[OffsetRange],
    before: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, int],
) -> bool:
    """Whether a partition of ``ranges`` has another leader epoch ``now`` than ``before``, or its
    first known one.

    What was read in between may be of a log that was cut since.
    """
    read = (each.topic_partition for each in ranges)
    return any(each in now and now[each] != before.get(each) for each in read)
