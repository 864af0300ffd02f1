"""The entries in one table's log, and which of them stand, through RESTORE and the like."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tests.faults.checker.chain import judge
from tests.faults.checker.entry import Entry, Erased, Span, read_entry
from tests.faults.checker.evidence import Place, real
from tests.faults.checker.generations import Names, names_after, placed
from tests.faults.checker.log import Commit, Stale
from tests.faults.checker.verdict import Fault, Finding

APP = "rivermouth/"


@dataclass(frozen=True, eq=False)
class Node:
    """An entry and those that stand before it: a list that branches where one was undone.

    ``starts`` and ``reached`` are, by partition, the first offset and the one after the last
    that the entries up to here account for; ``lost`` is what they record as lost. ``torn``:
    one of them was written over undone commits. ``said`` is the entry as it was written; here
    its places have the ``names`` of what their offsets mean (see ``generations``). A DELETE of
    others that an entry names is a node too: its entry is empty, and ``erased`` says what it took.
    """

    entry: Entry
    before: Node | None
    starts: Mapping[Place, int]
    reached: Mapping[Place, int]
    lost: tuple[Span, ...]
    torn: bool
    said: Entry
    names: Names
    erased: tuple[Erased, ...] = ()


def after(
    before: Node | None, entry: Entry, *, torn: bool = False, newest: Node | None = None
) -> Node:
    """The node of an entry that stands on ``before``; ``newest`` came last, and may be undone."""
    starts = dict(before.starts) if before else {}
    reached = dict(before.reached) if before else {}
    lost = before.lost if before else ()
    if entry.accepts == "reset":
        for place in [each for each in starts if real(each)[0] in entry.topics]:
            del starts[place], reached[place]
        lost = tuple(each for each in lost if each.place in starts)
    known = newest if entry.accepts == "reset" or before is None else before
    stood = next((n.said for n in _backwards(known) if n.said.pipeline == entry.pipeline), None)
    names = names_after(known.names if known else {}, entry, stood)
    here = placed(entry, names)
    for span in here.spans:
        starts.setdefault(span.place, span.start)
        reached[span.place] = max(reached.get(span.place, 0), span.until)
    torn = torn or (before is not None and before.torn)
    return Node(here, before, starts, reached, lost + here.lost, torn, entry, names)


def erasing(before: Node | None, version: int, erased: Sequence[Erased]) -> Node:
    """The node of a DELETE that entries name."""
    nothing = Entry("", version, 0, "", "", {}, (), {})
    if before is None:
        return Node(nothing, None, {}, {}, (), False, nothing, {}, tuple(erased))
    return replace(before, entry=nothing, said=nothing, before=before, erased=tuple(erased))


def standing(node: Node | None) -> list[Node]:
    """The nodes up to ``node``, oldest first."""
    return [*_backwards(node)][::-1]


def _takes_some(commit: Commit) -> bool:
    everything = commit.parameters.get("predicate") in (None, "", "[]", "true", '["true"]')
    return commit.operation == "DELETE" and commit.changes_data and not everything


def _beyond(node: Node, entry: Entry) -> bool:
    here = placed(entry, node.names)
    return any(node.reached.get(span.place, 0) > span.until for span in here.spans)


def _backwards(node: Node | None) -> Iterator[Node]:
    while node is not None:
        yield node
        node = node.before


class Ledger:
    """Walks the commits of one table for all pipelines that write it.

    ``earlier`` are entries that log clean-up has taken and the offsets table still knows.
    """

    def __init__(self, pipelines: Sequence[str], where: str, earlier: Sequence[Entry]) -> None:
        self.recorded: dict[str, list[Node]] = {name: [] for name in pipelines}
        self.node: Node | None = None
        self.nodes: list[Node] = []
        self._where = where
        self._findings: list[Finding] = []
        self._torn: dict[Node, list[Finding]] = {}
        self._nobody_knows: list[Finding] = []
        self._marks: list[tuple[int, Node | None]] = []
        self._commits: set[str] = set()
        self._newest: dict[str, Entry] = {}
        self._first: int | None = None
        self._named: dict[int, list[Erased]] = {}
        self._deletes: set[int] = set()
        for entry in sorted(earlier, key=lambda each: each.version):
            if entry.accepts is not None:
                self._go_back(entry)
            self._push(entry, entry.version)

    def foresee(self, commits: Sequence[Commit]) -> None:
        """Note which DELETEs the entries in these commits name, before they are walked.

        Raises Stale where one was walked before it was known to be named.
        """
        for commit in commits:
            for name in self._ours(commit):
                with suppress(ValueError):
                    for each in read_entry(commit.metadata, name, commit.version).deletes:
                        if self._first is not None and self._first <= each.version <= self.version:
                            raise Stale(f"version {each.version} of {self._where} is named now")
                        self._named.setdefault(each.version, []).append(each)

    def _ours(self, commit: Commit) -> list[str]:
        return [name for name in self.recorded if APP + name in commit.txns]

    def take(self, commit: Commit) -> None:
        """Walk on over the next commit."""
        ours = self._ours(commit)
        self._first = commit.version if self._first is None else self._first
        for name in ours:
            txn = commit.txns[APP + name]
            try:
                entry = read_entry(commit.metadata, name, commit.version)
            except ValueError as fault:
                self._find(Fault.LEDGER, f"version {commit.version} has {name}'s txn: {fault}")
                continue
            if entry.accepts is not None and (self._nobody_knows or commit.version == self._first):
                self._go_back(entry)
                self._nobody_knows = []
            newest, stood = self._newest.get(name), self._stood(name)
            found = [*judge(entry, txn, newest, stood, self._commits)]
            torn = newest is not stood and entry.accepts is None
            self._check_deletes(entry)
            node = self._push(entry, commit.version, torn=torn)
            self.recorded[name].append(node)
            if torn:
                self._torn[node] = found
            else:
                self._findings += found
        if not ours:
            self._follow(commit)
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
    def entries(self) -> int:
        """How many entries were walked."""
        return sum(not each.erased for each in self.nodes)

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
        newest = self.nodes[-1] if self.nodes else None
        self.node = after(self.node, entry, torn=torn, newest=newest)
        self.nodes.append(self.node)
        self._newest[entry.pipeline] = entry
        self._commits.add(entry.commit)
        self._marks.append((version, self.node))
        return self.node

    def _stood(self, pipeline: str) -> Entry | None:
        nodes = _backwards(self.node)
        return next((each.said for each in nodes if each.said.pipeline == pipeline), None)

    def _check_deletes(self, entry: Entry) -> None:
        """What an entry names must be DELETEs of others before it. Clean-up may have taken one."""
        for version in dict.fromkeys(each.version for each in entry.deletes):
            if version < (self._first or 0) and version not in self._deletes:
                self._erase(version)
            elif version not in self._deletes:
                what = f"{entry.pipeline} {entry} names version {version}, no DELETE of others"
                self._find(Fault.ERASURE, what)

    def _erase(self, version: int) -> None:
        self._deletes.add(version)
        self.node = erasing(self.node, version, self._named[version])
        self.nodes.append(self.node)

    def _follow(self, commit: Commit) -> None:
        """Follow a commit of others that may have undone entries."""
        if commit.operation == "RESTORE":
            target = str(commit.parameters.get("version"))
            if target.isdigit() and self.knows(int(target)):
                self.node, self._nobody_knows = self.at(int(target)), []
            else:
                what = f"RESTORE at version {commit.version}: to which version, nobody can tell"
                self._nobody_knows = [Finding(Fault.UNREADABLE, self._where, what)]
        elif commit.version in self._named and _takes_some(commit):
            self._erase(commit.version)
        elif commit.emptied:
            self.node, self._nobody_knows = None, []
        elif commit.changes_data:
            what = f"version {commit.version} ({commit.operation}) changes data without an entry"
            self._find(Fault.LEDGER, what)

    def _find(self, fault: Fault, what: str) -> None:
        self._findings.append(Finding(fault, self._where, what))
