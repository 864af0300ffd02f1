"""All that Kafka has of what the entries of one table cover, read once and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from confluent_kafka import Message

from tests.faults.checker.evidence import Place, Watched, real
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
        self.ids: dict[Place, str] = {}
        self._limits: dict[Place, int] = {}
        self._keys: dict[Place, str | None] = {}
        self._chosen: set[Place] = set()
        self._lows: dict[Place, int] = {}

    def update(self, new: Sequence[Node], cluster: Cluster, facts: Facts) -> None:
        """Read on to where the ``new`` entries lead. Raises Stale to begin anew."""
        for node in new:
            self._accept(node)
            for span in node.entry.spans:
                self.ids[span.place] = node.entry.topics.get(real(span.place)[0], "")
                start, until = self._wanted.get(span.place, (span.start, span.until))
                extent = (min(start, span.start), max(until, span.until))
                self._wanted[span.place] = extent
        there = {
            place: real(place)
            for place in self._wanted
            if facts.topics.get(real(place)[0]) == self.ids[place]
        }
        known = cluster.bounds({*there.values()})
        bounds = {place: known[each] for place, each in there.items() if each in known}
        self._lows = {place: low for place, (low, _) in bounds.items()}
        for place in self._wanted:
            if place not in self.records:
                self._add(place, real(place)[0] in facts.thinned)
            # Where a log was cut, it ends before what was read of it.
            ends = -1 if place in self._limits else bounds.get(place, (0, -1))[1]
            self.records[place].end = ends
        self._read(cluster, {place: self._left(place) for place in self._wanted})

    def _accept(self, node: Node) -> None:
        """What an entry's changes mean for the records that were due before it."""
        changes, before = node.said.changes, node.before
        if changes is None or before is None:
            return
        for place, _, now in changes.moved:
            cut = 0 if now is None or changes.renews(place[0]) else now
            for each in (each for each in self._wanted if real(each) == place):
                if each != node.names[place]:
                    self._limits[each] = min(cut, self._limits.get(each, cut))
            if place[0] not in changes.topics or changes.cluster:
                self._chosen.add(node.names[place])
        if "key" in changes.settings:
            former = (before.names.get(each, each) for each in node.said.position)
            self._keys.update(dict.fromkeys(former, changes.settings["key"]))
            self._chosen.update(node.names.values())

    def _add(self, place: Place, thinned: bool) -> None:
        watched = self._by_topic[real(place)[0]]
        watched = replace(watched, key_format=self._keys.get(place, watched.key_format))
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
        low = max(low, records.until)
        if self._limits.get(place, until) < until and low < until:
            end = max(low, self._limits[place])
            records.dark.append((end, until))
            return low, end
        return low, until

    def _read(self, cluster: Cluster, left: Mapping[Place, tuple[int, int]]) -> None:
        for place, messages in _read(cluster, left, committed=True):
            self.records[place].take(messages)
        for place in left:
            self.records[place].finish(max(self._wanted[place][1], self.records[place].until))
        # Where every offset is a visible record, there is no aborted one to look for.
        holes = {
            place: (start, until)
            for place, (start, until) in left.items()
            if self.records[place].visible(start, until) < until - start
        }
        for place, messages in _read(cluster, holes, committed=False):
            self.records[place].take_uncommitted(messages)

    def skipped(self, node: Node | None) -> Iterator[Finding]:
        """Partitions whose first offsets were passed over, where ``earliest`` was due."""
        for place, start in node.starts.items() if node is not None else ():
            low = self._lows.get(place, start)
            if (
                low < start
                and place not in self._chosen
                and self._by_topic[real(place)[0]].earliest
            ):
                what = f"read from {start} on, not from the first offset, {low}"
                yield Finding(Fault.LOST_RANGE, str(self.records[place]), what)


def _read(
    cluster: Cluster, ranges: Mapping[Place, tuple[int, int]], *, committed: bool
) -> Iterator[tuple[Place, list[Message]]]:
    """As ``Cluster.read``; one partition may be asked for under several names."""
    left = dict(ranges)
    while left:
        names = {real(place): place for place in left}
        once = {each: left.pop(place) for each, place in names.items()}
        for each, messages in cluster.read(once, committed=committed):
            yield names[each], messages
