"""One table and what is checked about it; keeps what was read, so that a later look is short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.faults.checker import projection
from tests.faults.checker.append import Tally, covers
from tests.faults.checker.conservation import Counts
from tests.faults.checker.entry import Entry
from tests.faults.checker.erasure import Erasures
from tests.faults.checker.evidence import Watched, real
from tests.faults.checker.fold import Fold
from tests.faults.checker.history import History
from tests.faults.checker.kafka import Cluster, Facts
from tests.faults.checker.ledger import Ledger, Node, standing
from tests.faults.checker.log import Log
from tests.faults.checker.prefixes import Prefixes
from tests.faults.checker.projection import Projection
from tests.faults.checker.quarantine import Held, Quarantine, misplaced
from tests.faults.checker.reader import SnapshotLog
from tests.faults.checker.records import meanings
from tests.faults.checker.topics import Topics
from tests.faults.checker.upsert import Snapshots
from tests.faults.checker.verdict import Fault, Finding


class Table:
    """The table that ``pipelines`` write, and its quarantine."""

    def __init__(self, pipelines: Sequence[Watched], offsets: Projection) -> None:
        first = pipelines[0]
        self.log = Log(first.table)
        self.topics = Topics(pipelines)
        self.snapshots = Snapshots(self.log, first)
        self.ledger = Ledger([], "", [])
        self._pipelines = pipelines
        self._offsets = offsets
        self._quarantine = Quarantine(first.quarantine)
        self._held = Held({}, {})
        self._tally = None if first.keys else Tally(self.log, first)
        self._erasures = Erasures(self.log, first)
        ordered, erasures = bool(first.order_by), self._erasures
        self._fold = Fold(ordered=ordered, erasures=erasures)
        self._found: list[Finding] = []
        self._known = 0

    def update(self, cluster: Cluster, facts: Facts, seed: int) -> None:
        """Read what is new: the log first, so that all else is at least as new."""
        unread = self.log.version < 0
        commits = self.log.update()
        if unread:
            self._begin()
        self.ledger.foresee(commits)
        for commit in commits:
            self.ledger.take(commit)
        new, self._known = self.ledger.nodes[self._known :], len(self.ledger.nodes)
        self.topics.update(new, cluster, facts)
        records = self.topics.records
        self._quarantine.update()
        self._held = self._quarantine.held(self._standing(), records)
        self._erasures.update(new, records)
        if self._tally is not None:
            self._tally.update(records)
        else:
            self.snapshots.compare(new, self.ledger.node, self._fold, records, seed)

    def _begin(self) -> None:
        """Start the ledger with what the offsets table knows of entries that are gone."""
        names = [each.name for each in self._pipelines]
        earlier = [self._offsets.entries(name, self.log.first) for name in names]
        self._found = [each for mine in earlier for each in projection.contiguous(mine)]
        everything = [each for mine in earlier for each in mine]
        self.ledger = Ledger(names, self.log.path.name, everything)

    def _standing(self) -> list[Entry]:
        return [node.entry for node in standing(self.ledger.node)]

    @property
    def unchecked(self) -> int:
        """How many rows, keys and ranges could not be judged."""
        counts = self._counts()
        ranges = sum(counts.unchecked(each) for each in self._standing())
        rows = self._tally.unchecked(self.topics.records) if self._tally else 0
        rows += self._erasures.left(self.ledger.node)
        return rows + ranges + self._held.unchecked + self.snapshots.unchecked

    def findings(self, *, settled: bool) -> Iterator[Finding]:
        """All that is wrong with log, ledger, rows, quarantine and offsets table."""
        for log in (self.log, self._quarantine.log):
            yield from log_findings(log)
        yield from self._found
        yield from self.ledger.findings
        yield from self.ledger.check_txns(self.log.txns)
        yield from self.topics.skipped(self.ledger.node)
        yield from self._ends()
        yield from self._held.findings
        yield from self._erasures.findings
        yield from self._rows()
        counts = self._counts()
        for entry in self._standing():
            yield from counts.judge(entry)
        for watched in self._pipelines:
            nodes = self.ledger.recorded[watched.name]
            known = {each.entry.commit: counts.expected(each.entry) for each in nodes}
            rows, entries = self._offsets.rows(watched.name), [each.said for each in nodes]
            yield from projection.judge(rows, entries, known, settled=settled)

    def heard(self, history: History, *, settled: bool) -> Iterator[Finding]:
        """What is wrong between the producer's history and the table."""
        topics = {topic for each in self._pipelines for topic in each.topics}
        for place in history.places:
            if real(place)[0] in topics:
                meant = [
                    each
                    for each in meanings(self.topics.records, place)
                    if history.is_of(place, self.topics.ids[each.place])
                ]
                yield from history.judge(place, self.ledger.node, meant, settled=settled)

    def seen(self, snapshots: SnapshotLog) -> Iterator[Finding]:
        """What is wrong between a reader's snapshots and the entries."""
        if self._tally is not None:
            known = (self.topics.records, self._erasures)
            expect = Prefixes(self.ledger.node, *known).at
            return snapshots.judge(self.log.path, self.ledger, expect)
        return snapshots.judge(self.log.path, self.ledger, self._folded)

    def _folded(self, node: Node | None) -> tuple[int, int] | None:
        return None if self._fold.dark else self._fold.sums[node]

    def _counts(self) -> Counts:
        records = self.topics.records
        if self._tally is None:
            return Counts(records, self._held, None)
        erased = self._tally.erased(self.ledger.node, records, self._erasures)
        return Counts(records, self._held, self._tally.counts, erased)

    def _rows(self) -> Iterator[Finding]:
        records = self.topics.records
        if self._tally is not None:
            yield from self._tally.judge(self.ledger.node, records, self._held, self._erasures)
            return
        yield from self.snapshots.findings
        for place, each in records.items():
            covered = covers(self.ledger.node, each)
            inside = slice(covered.start, covered.stop)
            yield from misplaced(each, self._held.counts[place], inside)

    def _ends(self) -> Iterator[Finding]:
        """Entries may not lead beyond where Kafka ends."""
        node = self.ledger.node
        for place, reached in node.reached.items() if node is not None else ():
            records = self.topics.records[place]
            if 0 <= records.end < reached:
                what = f"entries lead to {reached}, Kafka ends at {records.end}"
                yield Finding(Fault.LEDGER, str(records), what)


def log_findings(log: Log) -> Iterator[Finding]:
    """What is wrong with a table's log and the files it names."""
    for problem in log.problems:
        yield Finding(Fault.UNREADABLE, log.path.name, problem)
    for file in log.missing():
        yield Finding(Fault.MISSING_FILE, log.path.name, file)
