"""Rows that are gone on purpose: what entries say of it, compared with the log and the ranges.

An entry names the rows that a DELETE of others took, by the offsets of their records. It is
believed as far as the log bears it out: that DELETE is in the log and stands, it took no fewer rows
than entries name, and it came after the entries that wrote the rows, and before the entry that
names them. What was committed later must be there.

Log clean-up takes commits in their order. So an entry that names deleted rows outlives, in the log,
the entries that wrote these rows: while those are verified, it is there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rivermouth.verification.ledger.coverage import Coverage, Flags, Offsets, Span
from rivermouth.verification.ledger.entry import Deletion, LedgerEntry, Partition, shown
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings, Kind, Unchecked, count

Step = tuple[int, int]
"""A taker, and a giver of which it draws more."""


class Budgets:
    """What each giver has left; None: it has no limit.

    A taker may name several givers. What it draws is moved to another of its givers where a later
    taker needs just that one. So the sum of all draws does not depend on which giver is asked
    first. Here the entries take of what the DELETEs took.
    """

    def __init__(self, amounts: Mapping[int, int | None]) -> None:
        self._left = {each: 1 << 62 if most is None else most for each, most in amounts.items()}
        self._drawn: dict[int, Counter[int]] = {each: Counter() for each in amounts}
        """By giver, then by taker."""
        self._givers: dict[int, Sequence[int]] = {}

    def draw(self, taker: int, givers: Sequence[int], wanted: int) -> int:
        """How much of ``wanted`` the givers can give a taker. Counts it.

        A taker has the same givers each time.
        """
        self._givers[taker] = givers
        drawn = 0
        while drawn < wanted and (path := self._path(taker)):
            drawn += self._move(path, wanted - drawn)
        return drawn

    def _path(self, taker: int) -> tuple[Step, ...]:
        """The shortest way to a giver that has something left; empty where there is none.

        The taker of each step but the first draws less of the giver of the step before.
        """
        ways: deque[tuple[Step, ...]] = deque([()])
        takers, givers = deque([taker]), set[int]()
        while takers:
            way, at = ways.popleft(), takers.popleft()
            for giver in self._givers[at]:
                if giver in givers:
                    continue
                givers.add(giver)
                longer = (*way, (at, giver))
                if self._left[giver]:
                    return longer
                others = [each for each, some in self._drawn[giver].items() if some]
                takers.extend(others)
                ways.extend([longer] * len(others))
        return ()

    def _move(self, path: Sequence[Step], wanted: int) -> int:
        """Draw along a path as much as each of its steps allows."""
        back = [(giver, taker) for (_, giver), (taker, _) in pairwise(path)]
        last = path[-1][1]
        amount = min(wanted, self._left[last], *(self._drawn[each][of] for each, of in back))
        self._left[last] -= amount
        for taker, giver in path:
            self._drawn[giver][taker] += amount
        for giver, taker in back:
            self._drawn[giver][taker] -= amount
        return amount


class Erased:
    """The rows of one pipeline that accepted DELETEs took.

    ``rows`` counts those that are named and were found missing. An entry that says what cannot be
    is a finding, and is not believed.
    """

    def __init__(self, ledger: Ledger, coverage: Coverage, findings: Findings) -> None:
        self.rows = 0
        versions = [each.version for each in ledger.effective]
        self._follows: dict[int, int] = {}
        """The first entry after each DELETE, by the version of the DELETE."""
        self._left: Counter[int] = Counter()
        """How many rows may be missing that nobody can name, by the version of the DELETE."""
        self._used = 0
        self._deletions: dict[int, list[Deletion]] = {}
        """What entries say, by the version of the DELETE: several may tell one, a part each."""
        self._runs: dict[Partition, list[Span]] = {}
        """Named offsets; the entry of a run is the first one after the DELETE that took it. Each
        DELETE has its own: two may name one offset, where a topic was created again."""
        for deletion in _believed(ledger, coverage, findings):
            follows = bisect_left(versions, deletion.version)
            self._follows[deletion.version] = follows
            self._left[deletion.version] += deletion.unlisted
            self._deletions.setdefault(deletion.version, []).append(deletion)
            for partition, found in deletion.rows.items():
                runs = Span([(start, until, follows) for start, until in found])
                self._runs.setdefault(partition, []).append(runs)
        self._budgets = Budgets({each: ledger.deletes.get(each) for each in self._deletions})

    def mask(self, partition: Partition, offsets: Offsets, entries: Offsets) -> Flags:
        """Which of the offsets are those of rows that are named, of ``entries`` beside them.

        A DELETE took nothing of an entry that came after it: the offset that is named is then that
        of an earlier row.
        """
        named = np.zeros(len(offsets), bool)
        for runs in self._runs.get(partition, ()):
            found = runs.index(offsets)
            named |= (found >= 0) & (entries < runs.entries[found])
        return named

    def follows(self, partition: Partition, offset: int) -> list[int]:
        """The first entry after each DELETE that took a row of this offset."""
        found: list[int] = []
        for runs in self._runs.get(partition, ()):
            at = bisect_right(runs.starts, offset) - 1
            if at >= 0 and offset < runs.untils[at]:
                found.append(int(runs.entries[at]))
        return found

    def any_named(self) -> bool:
        """Whether any row is named."""
        return bool(self._runs)

    def took(self, entry: LedgerEntry, number: int, lack: int) -> int:
        """How many of the ``lack`` rows of an entry the DELETEs that name any of its offsets may
        have taken. Counts them: no DELETE takes more rows of all entries than its commit tells.

        ``number`` is its index. For records that have several rows: a DELETE took some or all of
        them. Once for each entry.
        """
        able = [
            version
            for version, deletions in self._deletions.items()
            if number < self._follows[version] and any(_names(each, entry) for each in deletions)
        ]
        return self._budgets.draw(number, able, lack)

    def may_lack(self, entry: int, until: int = 1 << 62) -> bool:
        """Whether a row of an entry that is missing may be one that nobody can name. Counts it.

        Where a row of the entry ``until`` is in its place, the DELETE came between the two.
        """
        left = (version for version, left in self._left.items() if left > 0)
        able = (version for version in left if entry < self._follows[version] <= until)
        for version in sorted(able):  # the first that can: the others can explain more
            # A killed acceptance may have named a part: these records may have had several rows.
            if self._budgets.draw(_unnamed(version), [version], 1):
                self._left[version] -= 1
                self._used += 1
                return True
            self._left[version] = 0
        return False

    def may_lack_of(self, entries: Offsets) -> Flags:
        """The same for many rows, by their entries."""
        found = np.zeros(len(entries), bool)
        for place, entry in enumerate(entries.tolist()):
            if not any(self._left.values()):
                break
            found[place] = self.may_lack(entry)
        return found

    def report(self, findings: Findings) -> None:
        """Say how many rows are gone on purpose, and of how many nobody can tell whether."""
        findings.erased = self.rows
        rows = count(self._used, "row")
        line = f"{rows}: missing; accepted DELETEs took so many, nobody can tell which"
        findings.leave(Unchecked.ERASED, line, self._used)


def _unnamed(version: int) -> int:
    """What stands, beside the entries, for the rows of a DELETE that nobody can name."""
    return -1 - version


def _names(deletion: Deletion, entry: LedgerEntry) -> bool:
    """Whether a DELETE took rows of records that an entry covers."""
    return any(
        start < each.until and each.start < until
        for each in entry.ranges
        for start, until in deletion.rows.get(each.partition, ())
    )


def _believed(ledger: Ledger, coverage: Coverage, findings: Findings) -> Iterator[Deletion]:
    """What entries say of deleted rows, without what cannot be."""
    changed = [each for each in ledger.effective if each.changes is not None]
    claims = [
        (entry, _without_former(changed, each))
        for entry in ledger.effective
        for each in entry.deletes
    ]
    named: Counter[int] = Counter()
    for _, each in claims:
        named[each.version] += each.count
    for entry, each in claims:
        wrong = _wrong(ledger, coverage, entry, each, named)
        if wrong:
            where = f"entry {entry.sequence} (version {entry.version})"
            line = f"{where} says that version {each.version} deleted rows on purpose; {wrong}"
            findings.add(Kind.FAULT, line)
        else:
            yield each


def _without_former(changed: Sequence[LedgerEntry], deletion: Deletion) -> Deletion:
    """Without the rows whose offsets mean other records since a change that was accepted later.

    ``changed`` are the entries that accepted one.
    """
    rows = deletion.rows
    for entry in changed:
        if entry.changes is not None and entry.version > deletion.version:
            renewed = entry.changes.renewed()
            rows = {
                each: _before(renewed[each], runs) if each in renewed else runs
                for each, runs in rows.items()
            }
    return replace(deletion, rows={each: runs for each, runs in rows.items() if runs})


def _before(first: int, runs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """The parts of runs before the offset ``first``."""
    return [(start, min(until, first)) for start, until in runs if start < first]


def _wrong(
    ledger: Ledger,
    coverage: Coverage,
    entry: LedgerEntry,
    deletion: Deletion,
    named: Mapping[int, int],
) -> str:
    """What an entry says of a DELETE that cannot be; empty where nothing is."""
    at = deletion.version
    if at >= entry.version:
        return "it came later than the entry"
    if at >= ledger.first:
        if at not in ledger.deletes:
            return "it is no DELETE of others, or it was rolled back"
        took = ledger.deletes[at]
        if took is not None and named[at] > took:
            return f"entries name {named[at]:,} rows, it took {took:,}"
    for partition, runs in deletion.rows.items():
        span = coverage.spans.get(partition)
        if span is None:
            continue
        last = np.array([until - 1 for _, until in runs], np.int64)
        # An offset that lies in a former range, too, may be that of an earlier row.
        last = last[(span.index(last) >= 0) & (coverage.former.times(partition, last) == 0)]
        entries = span.entries[span.index(last)]
        for offset, index in zip(last.tolist(), entries.tolist(), strict=True):
            if ledger.effective[index].version > at:
                return f"{shown(partition)}@{offset} was written later"
    return ""
