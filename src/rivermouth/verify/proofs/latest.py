"""Tables with the newest row of each key: the rule, repeated from its description.

The entries of the ledger count in their order. Inside an entry, a tombstone removes the earlier
records of its key in its own partition; of what is left the highest rank wins. A tombstone in an
entry deletes the row from before that entry; otherwise the winner replaces that row only if its
rank is higher. The rank is (order_by columns, topic, partition, offset), nulls lowest. Without
order_by the winner always replaces that row, since entries of format 2; before, its rank had to be
higher, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from operator import attrgetter

from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.keyed import verify_keyed
from rivermouth.verify.proofs.proof import Stored, Workspace
from rivermouth.verify.proofs.rule import Change, Expected, Rank
from rivermouth.verify.subject import Subject


def verify_latest(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``upsert``."""
    rule = Latest(_replacing(subject))
    subject.findings.superseded = verify_keyed(subject, stored, workspace, rule)


def _replacing(subject: Subject) -> frozenset[int]:
    """The effective entries whose winners replace the row that stood, whatever their rank."""
    if subject.pipeline.target.order_by:
        return frozenset()
    entries = enumerate(subject.ledger.effective)
    return frozenset(number for number, each in entries if each.format > 1)


class Latest:
    """The newest record of a key wins. See ``Rule``.

    ``replacing`` are the entries whose winners always replace the row that stood.
    """

    def __init__(self, replacing: Collection[int] = ()) -> None:
        self._replacing = replacing

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """See ``Rule.expected``."""
        found = Expected(None, certain)
        for entry, batch in groupby(sorted(changes, key=attrgetter("entry")), attrgetter("entry")):
            had_tombstone, winner = _winner(list(batch))
            row = None if had_tombstone else found.row
            if winner is not None and (row is None or self._is_newer(winner, row)):
                row = winner
            replaces = winner is not None and entry in self._replacing
            known = (had_tombstone or replaces) and entry >= readable_from
            found = Expected(row, found.certain or known)
        return found

    def _is_newer(self, winner: Change, row: Change) -> bool:
        return winner.entry in self._replacing or winner.rank > row.rank

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """See ``Rule.may_stand``: only a newer one.

        Where entries decide, a record of another partition may have come in a later one.
        """
        *_, found_in, _ = found
        *_, expected_in, _ = expected
        return found > expected or (len(self._replacing) > 0 and found_in != expected_in)


def _winner(batch: list[Change]) -> tuple[bool, Change | None]:
    """Whether an entry has a tombstone of the key, and which of its changes wins."""
    last: dict[Partition, int] = {}
    for each in batch:
        if each.value is None:
            last[each.partition] = max(each.offset, last.get(each.partition, -1))
    left = [
        each
        for each in batch
        if each.value is not None and each.offset > last.get(each.partition, -1)
    ]
    return bool(last), max(left, key=attrgetter("rank"), default=None)
