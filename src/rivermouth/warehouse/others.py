"""The ledgers of the other pipelines that write a table."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.protocol.guards import neighbours
from rivermouth.protocol.history import History
from rivermouth.warehouse.ports import LedgerLog


class Others:
    """What a start must know of others where its ledger lacks a topic, see ``guards.check_alone``.

    The first reading takes the whole log, each later one what was committed since, if the log still
    has all of that.
    """

    def __init__(self, log: LedgerLog, pipeline: str) -> None:
        self._log = log
        self._pipeline = pipeline
        self._known: Mapping[str, History] | None = None

    def read(self) -> tuple[History, ...]:
        """The ledgers of others as they are now. Raises LogUnreadable and LedgerBroken."""
        known = self._read_on()
        if known is None:
            known = neighbours(self._log.commits(), self._pipeline)
        self._known = known
        return tuple(each for name, each in sorted(known.items()) if name)

    def _read_on(self) -> Mapping[str, History] | None:
        """From what is known; None where nothing is, or log clean-up took what followed on it."""
        version = self._known[""].version if self._known is not None else None
        if version is None:
            return None
        known = neighbours(self._log.commits_after(version), self._pipeline, self._known)
        newest = next(iter(self._log.commits_backwards()), None)
        return known if newest is None or (known[""].version or 0) >= newest.version else None
