"""What the checker asks of Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import Message

from rivermouth.verify.ledger.entry import Partition


@dataclass(frozen=True)
class Identity:
    """Cluster id; topic ids of the topics that exist; those that Kafka compacts.

    ``untold`` are topics whose settings the user may not read: Kafka may compact them.
    """

    cluster: str
    topics: Mapping[str, str]
    compacted: frozenset[str]
    untold: frozenset[str] = frozenset()

    @property
    def thinned(self) -> frozenset[str]:
        """The topics of which compaction may have removed records."""
        return self.compacted | self.untold


class Source(Protocol):
    """One cluster, read with ``read_committed``. Each method raises SourceError.

    An offset may have no visible record: a transaction marker, an aborted record, or a record
    that compaction removed.
    """

    def identity(self, topics: Iterable[str]) -> Identity:
        """What the cluster says of itself and of ``topics``; a missing topic is left out."""

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """All partitions of ``topics``; a missing topic is left out."""

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset that each partition still holds."""

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The last stable offset of each partition: where a read_committed reader ends."""

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, list[Message]]]:
        """The visible records of each ``[start, until)``, in order within a partition.

        Yields an empty list last, once for each partition, when it has been read to the end.
        """

    def held(self, partition: Partition, offsets: Iterable[int]) -> set[int]:
        """Those of ``offsets`` at which there is a record, also one that was aborted."""
