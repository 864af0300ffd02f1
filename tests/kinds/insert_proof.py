"""Tables with the first row of each key: the rule, repeated from its description."""

from __future__ import annotations

from collections.abc import Sequence

from rivermouth.verification.proofs.key_rules import Change, Expected, Rank
from rivermouth.verification.proofs.keyed import verify_keyed
from rivermouth.verification.proofs.proof import Stored, Workspace
from rivermouth.verification.subject import Subject


def verify_insert(subject: Subject, stored: Stored, workspace: Workspace) -> None:
    """The ``Proof`` of the shape ``first_seen``."""
    subject.findings.repeated = verify_keyed(subject, stored, workspace, First())


class First:
    """The earliest entry wins, in it the lowest (topic, partition, offset). See ``Rule``."""

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """See ``Rule.expected``."""
        first = min(changes, key=lambda each: (each.entry, each.rank), default=None)
        return Expected(first, certain)

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """See ``Rule.may_stand``: one before it, or of another partition."""
        (partition, offset), (its_partition, its_offset) = found, expected
        return partition != its_partition or bool(offset < its_offset)
