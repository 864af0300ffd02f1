"""Assessing a pipeline from outside, while a run may commit to its table."""

from __future__ import annotations

from collections.abc import Callable

from rivermouth.config import Pipeline
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.reading import read_on

Judge = Callable[[LedgerSnapshot], Assessment]
"""What a run would do with a ledger, see ``assess``; asks Kafka, or not."""
_LOOKS = 5
"""How often it is read on while runs commit."""


def look(
    store: LedgerStore, pipeline: Pipeline, ledger: LedgerSnapshot, judge: Judge
) -> Assessment:
    """What a run would do now; ``ledger`` is as it was read first.

    A run may commit while we read: then offsets table and ``txn`` are ahead of what was read of
    the log. So a halt is believed only where nothing was committed meanwhile; else what was
    committed is read, too. Raises what ``judge`` does, LogUnreadable, LedgerBroken, and
    OffsetsUnreadable.
    """
    found = judge(ledger)
    for _ in range(_LOOKS):
        newer = read_on(store, pipeline, found.ledger) if found.halt is not None else None
        if newer is None:
            return found
        found = judge(newer)
    return found
