"""Which rows of the offsets table may be deleted. Pure.

A row may go once it is old and a newer old row of its partition is there: so the newest of each
partition stays, from which a position is recovered once log clean-up has taken the ledger. A row
with bad records stays: its commit id says which rows of the quarantine count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rivermouth.spark.balanced import balanced

OldRows = tuple[str, str, int, int, int]
"""Pipeline, topic and partition of old rows without bad records; the newest of their sequences,
and how many they are.
"""


@dataclass
class Expired:
    """Collects old rows; ``predicates`` are the conditions, in SQL, of those that may go."""

    _newest: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _rows: int = 0

    def add(self, rows: Iterable[OldRows]) -> None:
        """Take more of the old rows, in any order."""
        for pipeline, topic, partition, sequence, number in rows:
            where = (pipeline, topic, partition)
            self._newest[where] = max(sequence, self._newest.get(where, 0))
            self._rows += number

    @property
    def worth_it(self) -> bool:
        """Whether as many rows may go as have to stay: else files are written anew for little."""
        return self._rows >= 2 * len(self._newest) > 0

    def predicates(self) -> list[str]:
        """One condition for each pipeline: rows below its newest old one, but for idle partitions.

        Entries come into the table in order: so no row comes later that the condition meets.
        """
        return [self._predicate(each) for each in sorted({where[0] for where in self._newest})]

    def _predicate(self, pipeline: str) -> str:
        mine = {where[1:]: n for where, n in self._newest.items() if where[0] == pipeline}
        newest = max(mine.values())
        idle: dict[tuple[str, int], list[int]] = {}
        for (topic, partition), sequence in mine.items():
            if sequence < newest:
                idle.setdefault((topic, sequence), []).append(partition)
        below = f"pipeline = '{pipeline}' AND sequence < {newest} AND quarantined = 0"
        kept = [_of(*each, partitions) for each, partitions in sorted(idle.items())]
        return f"{below} AND NOT {balanced(_either, kept)}" if kept else below


def _either(one: str, other: str) -> str:
    return f"({one} OR {other})"


def _of(topic: str, sequence: int, partitions: Sequence[int]) -> str:
    listed = ", ".join(str(each) for each in sorted(partitions))
    return f"(sequence = {sequence} AND topic = '{topic}' AND partition IN ({listed}))"
