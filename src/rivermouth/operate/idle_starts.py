"""Which ``start`` in a file has no effect any more."""

from __future__ import annotations

from pathlib import Path

from rivermouth.config import Config
from rivermouth.operate.looking import ledger_or_fault
from rivermouth.protocol.first_offsets import start_is_over
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.folder.ledger import folder_ledger


def idle_starts(config: Config) -> list[str]:
    """The pipelines whose ``start`` has no effect any more.

    Their ledgers tell it, as far as they can be read: none where the tables are in a catalog.
    """
    if not isinstance(config.warehouse, Path):
        return []
    found: list[str] = []
    for each in config.pipelines.values():
        if "start" in each.source.model_fields_set:
            ledger = ledger_or_fault(folder_ledger(config.warehouse, each), each)
            if isinstance(ledger, LedgerSnapshot) and start_is_over(each, ledger.newest):
                found.append(each.name)
    return found
