"""The entries in one table's log, and which of them stand, through RESTORE and the like."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.faults.checker.chain import judge
from tests.faults.checker.entry import Entry, Span, read_entry
from tests.faults.checker.evidence import Place
from tests.faults.checker.log import Commit
from tests.faults.checker.verdict import Fault, Finding

APP = "rivermouth/"


@dataclass(frozen=True, eq=False)
class Node:
    """An entry and those that stand before it: a list that branches where one was undone.

    ``starts`` and ``reached`` are, by partition, the first offset and the one after the last
    that the entries up to here account for; ``lost`` is what they record as lost. ``torn``:
    one of them was written over undone commits.
    """

    entry: Entry
    before: Node | None
    starts: Mapping[Place, int]
    reached: Mapping[Place, int]
    lost: tuple[Span, ...]
    torn: bool


def after(before: Node | None, entry: Entry, *, torn: bool = False) -> Node:
    """The node of an entry that stands on ``before``."""
    starts = dict(before.starts) if before else {}
    reached = dict(before.reached) if before else {}
    lost = before.lost if before else ()
    if entry.accepts == "reset":
        for place in [each for each in starts if each[0] in entry.topics]:
            del starts[place], reached[place]
        lost = tuple(each for each in lost if each.place in starts)
    for span in entry.spans:
        starts.setdefault(span.place, span.start)
        reached[span.place] = max(reached.get(span.place, 0), span.until)
    torn = torn or (before is not None and before.torn)
    return Node(entry, before, starts, reached, lost + entry.lost, torn)


def standing(node: Node | None) -> list[Node]:
    """The nodes up to ``node``, oldest first."""
    return [*_backwards(node)][::-1]


def _beyond(node: Node, entry: Entry) -> bool:
    return any(node.reached.get(span.place, 0) > span.until for span in entry.spans)


def _backwards(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.before


class Ledger:
    """Walks the commits of one table for all pipelines that write it.

    ``earlier`` are entries that log clean-up has taken and the offsets table still knows.
    """

    def __init__(self, pipelines: Sequence[str], where: str, earlier: Sequence[Entry]) -> None:
        self.recorded: dict[str, list[Entry]] = {name: [] for name in pipelines}
        self.node: Node | None = None
        self.nodes: list[Node] = []
        self._where = where
        self._findings: list[Finding] = []
        self._torn: dict[Node, list[Finding]] = {}
        self._nobody_knows: list[Finding] = []
        self._marks: list[tuple[int, Node | None]] = []
        self._commits: set[str] = set()
        self._newest: dict[str, Entry] = {}
        self._walked = False
        for entry in sorted(earlier, key=lambda each: each.version):
            if entry.accepts is not None:
                self._go_back(entry)
            self._push(entry, entry.version)

    def take(self, commit: Commit) -> None:
        """Walk on over the next commit."""
        ours = [name for name in self.recorded if APP + name in commit.txns]
        for name in ours:
            txn = commit.txns[APP + name]
            try:
                entry = read_entry(commit.metadata, name, commit.version)
            except ValueError as fault:
                self._find(Fault.LEDGER, f"version {commit.version} has {name}'s txn: {fault}")
                continue
            if entry.accepts is not None and (self._nobody_knows or not self._walked):
                self._go_back(entry)
                self._nobody_knows = []
            newest, stood = self._newest.get(name), self._stood(name)
            found = [*judge(entry, txn, newest, stood, self._commits)]
            torn = newest is not stood and entry.accepts is None
            self.recorded[name].append(entry)
            node = self._push(entry, commit.version, torn=torn)
            if torn:
                self._torn[node] = found
            else:
                self._findings += found
        if not ours:
            self._follow(commit)
        self._walked = True
        self._marks.append((commit.version, self.node))

    @property
    def findings(self) -> list[Finding]:
        """What is wrong. A commit over an undoing counts while it stands: it may be undone too."""
        torn = [each for node in standing(self.node) for each in self._torn.get(node, [])]
        return [*self._findings, *torn, *self._nobody_knows]

    def at(self, version: int) -> Node | None:
        """What stands at a version of the table."""
        index = bisect_right(self._marks, version, key=lambda each: each[0]) - 1
        return self._marks[index][1] if index >= 0 else None

    @property
    def version(self) -> int:
        """The newest version walked."""
        return self._marks[-1][0] if self._marks else -1

    def knows(self, version: int) -> bool:
        """Whether the log tells what stands at a version."""
        return bool(self._marks) and self._marks[0][0] <= version <= self.version

    def check_txns(self, txns: Mapping[str, int]) -> Iterator[Finding]:
        """The table's newest ``txn`` of each pipeline must be its newest entry's."""
        for name in self.recorded:
            newest = self._newest.get(name)
            known = newest.sequence if newest else 0
            if txns.get(APP + name, 0) > known:
                txn = txns[APP + name]
                yield Finding(Fault.LEDGER, name, f"txn {txn} has no entry; the last is {known}")

    def _go_back(self, entry: Entry) -> None:
        """What an entry accepts is not in the log: what it goes back behind was undone."""
        back = (n for n in _backwards(self.node) if not _beyond(n, entry))
        self.node = None if entry.accepts == "reset" else next(back, None)

    def _push(self, entry: Entry, version: int, *, torn: bool = False) -> Node:
        self.node = after(self.node, entry, torn=torn)
        self.nodes.append(self.node)
        self._newest[entry.pipeline] = entry
        self._commits.add(entry.commit)
        self._marks.append((version, self.node))
        return self.node

    def _stood(self, pipeline: str) -> Entry | None:
        nodes = _backwards(self.node)
        return next((each.entry for each in nodes if each.entry.pipeline == pipeline), None)

    def _follow(self, commit: Commit) -> None:
        """Follow a commit of others that may have undone entries."""
        if commit.operation == "RESTORE":
            target = str(commit.parameters.get("version"))
            if target.isdigit() and self.knows(int(target)):
                self.node, self._nobody_knows = self.at(int(target)), []
            else:
                what = f"RESTORE at version {commit.version}: to which version, nobody can tell"
                self._nobody_knows = [Finding(Fault.UNREADABLE, self._where, what)]
        elif commit.emptied:
            self.node, self._nobody_knows = None, []
        elif commit.changes_data:
            what = f"version {commit.version} ({commit.operation}) changes data without an entry"
            self._find(Fault.LEDGER, what)

    def _find(self, fault: Fault, what: str) -> None:
        self._findings.append(Finding(fault, self._where, what))
