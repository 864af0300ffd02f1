"""Tables with the first row of each key: the rule, repeated from its description.

The entries of the ledger count in their order; inside an entry the record with the lowest topic,
partition and offset is the first one. Its row stays. Later records of its key are repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from rivermouth.verify.proofs.keyed import verify_keyed
from rivermouth.verify.proofs.proof import Stored, Workspace
from rivermouth.verify.proofs.rule import Change, Expected, Rank
from rivermouth.verify.subject import Subject


def verify_first(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``insert``."""
    subject.findings.repeated = verify_keyed(subject, stored, workspace, First())


class First:
    """The first record of a key wins. See ``Rule``."""

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """See ``Rule.expected``: nothing that came earlier makes a key certain, it would win."""
        del readable_from
        first = min(changes, key=_place, default=None)
        return Expected(first, certain, stays=first is not None)

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """See ``Rule.may_stand``: only an earlier one.

        A record of another partition may have come in an earlier entry.
        """
        *_, found_in, found_at = found
        *_, expected_in, expected_at = expected
        earlier: bool = found_at < expected_at
        return earlier or found_in != expected_in


def _place(change: Change) -> tuple[object, ...]:
    return change.entry, change.partition, change.offset
