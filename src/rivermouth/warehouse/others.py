"""The ledgers of the other pipelines that write a table."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.protocol.guards import neighbours
from rivermouth.protocol.history import History
from rivermouth.warehouse.ports import LedgerLog


class Others:
    """What a start must know of others where its ledger lacks a topic, see ``guards.check_alone``.

    The first reading takes the whole log, each later one what was committed since.
    """

    def __init__(self, log: LedgerLog, pipeline: str) -> None:
        self._log = log
        self._pipeline = pipeline
        self._known: Mapping[str, History] | None = None

    def read(self) -> tuple[History, ...]:
        """The ledgers of others as they are now. Raises LogUnreadable and LedgerBroken."""
        version = self._known[""].version if self._known is not None else None
        since = self._log.commits() if version is None else self._log.commits_after(version)
        self._known = neighbours(since, self._pipeline, self._known)
        return tuple(each for name, each in sorted(self._known.items()) if name)
