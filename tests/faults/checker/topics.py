"""All that Kafka has of what the entries of one table cover, read once and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.faults.checker.evidence import Place, Watched
from tests.faults.checker.kafka import Cluster, Facts
from tests.faults.checker.ledger import Node
from tests.faults.checker.log import Stale
from tests.faults.checker.records import Records
from tests.faults.checker.verdict import Fault, Finding


class Topics:
    """The records of the partitions that the entries of ``pipelines`` name."""

    def __init__(self, pipelines: Sequence[Watched]) -> None:
        self.records: dict[Place, Records] = {}
        self._by_topic = {topic: each for each in pipelines for topic in each.topics}
        self._wanted: dict[Place, tuple[int, int]] = {}
        self._ids: dict[str, str] = {}
        self._lows: dict[Place, int] = {}

    def update(self, new: Sequence[Node], cluster: Cluster, facts: Facts) -> None:
        """Read on to where the ``new`` entries lead. Raises Stale to begin anew."""
        for node in new:
            self._ids.update(node.entry.topics)
            for span in node.entry.spans:
                start, until = self._wanted.get(span.place, (span.start, span.until))
                extent = (min(start, span.start), max(until, span.until))
                self._wanted[span.place] = extent
        there = {each for each, known in self._ids.items() if facts.topics.get(each) == known}
        bounds = cluster.bounds(place for place in self._wanted if place[0] in there)
        self._lows = {place: low for place, (low, _) in bounds.items()}
        for place in self._wanted:
            if place not in self.records:
                self._add(place, place[0] in facts.thinned)
            self.records[place].end = bounds.get(place, (0, -1))[1]
        self._read(cluster, {place: self._left(place) for place in self._wanted})

    def _add(self, place: Place, thinned: bool) -> None:
        watched = self._by_topic[place[0]]
        self.records[place] = Records(place, watched, self._wanted[place][0], thinned=thinned)

    def _left(self, place: Place) -> tuple[int, int]:
        """What is still to be read of a partition; what Kafka has deleted is noted as dark."""
        records, (start, until) = self.records[place], self._wanted[place]
        if start < records.start:
            raise Stale(f"{records} begins at {start} now")
        until = max(until, records.until)
        low = min(self._lows.get(place, until), until)
        if low > records.until:
            records.dark.append((records.until, low))
        return max(low, records.until), until

    def _read(self, cluster: Cluster, left: Mapping[Place, tuple[int, int]]) -> None:
        for place, messages in cluster.read(left, committed=True):
            self.records[place].take(messages)
        for place, (_, until) in left.items():
            self.records[place].finish(until)
        # Where every offset is a visible record, there is no aborted one to look for.
        holes = {
            place: (start, until)
            for place, (start, until) in left.items()
            if self.records[place].visible(start, until) < until - start
        }
        for place, messages in cluster.read(holes, committed=False):
            self.records[place].take_uncommitted(messages)

    def skipped(self, node: Node | None) -> Iterator[Finding]:
        """Partitions whose first offsets were passed over, where ``earliest`` was due."""
        for place, start in node.starts.items() if node is not None else ():
            low = self._lows.get(place, start)
            if low < start and self._by_topic[place[0]].earliest:
                what = f"read from {start} on, not from the first offset, {low}"
                yield Finding(Fault.LOST_RANGE, str(self.records[place]), what)
