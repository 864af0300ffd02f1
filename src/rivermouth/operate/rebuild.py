"""Recreating the offsets table from the logs of the target tables."""

from __future__ import annotations

from rivermouth.config import OFFSETS_TABLE, Config, Secrets, unresolved
from rivermouth.protocol.history import History
from rivermouth.protocol.log_replay import replay
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.counts import with_counts
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.offsets import LakeOffsets


def rebuild_offsets(config: Config, secrets: Secrets = unresolved) -> dict[str, int]:
    """Replace each configured pipeline's rows; return how many entries each had.

    Rows of entries that log clean-up has taken are kept, and so are those of pipelines
    that this configuration does not name. Raises the first fault of a ledger.
    """
    lake = Lake.of(config, secrets)
    table = LakeOffsets(lake.store(OFFSETS_TABLE))
    entries: dict[str, int] = {}
    for name, pipeline in config.pipelines.items():
        log = DeltaLog(lake.store(pipeline.target.table))
        begun = History(pipeline.ledger_name, f"{name} {pipeline.target.table}")
        history, recorded = replay(begun, log.commits())
        if history.faults:
            raise history.faults[0]
        table.rebuild(with_counts(log, recorded))
        entries[name] = len(recorded)
    return entries
