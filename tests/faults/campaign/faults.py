"""What happens to a world while no driver runs, as data: name, deed, and the halt it must cause."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.cimpl import NewPartitions
from deltalake import DeltaTable

from tests.faults.campaign.plan import Fault
from tests.faults.campaign.world import World

Deed = Callable[[World, str, random.Random], str]
"""Does it to a table's world; returns the code that the next start must halt with, or ""."""


def strike(world: World, fault: Fault, dice: random.Random) -> str:
    """Carry out one fault; returns the code of the halt it must cause, or ""."""
    if not (world.table(fault.table) / "_delta_log").exists():
        return ""
    return DEEDS[fault.name](world, fault.table, dice)


def _checkpoints_wiped(world: World, table: str, dice: random.Random) -> str:
    shutil.rmtree(world.scratch / "checkpoints", ignore_errors=True)
    return ""


def _checkpoints_corrupt(world: World, table: str, dice: random.Random) -> str:
    folder = world.scratch / "checkpoints" / f"{table}-foreign" / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0").write_bytes(dice.randbytes(64))
    for file in (world.scratch / "checkpoints").rglob("offsets/*"):
        file.write_bytes(b"")
    return ""


def _offsets_gone(world: World, table: str, dice: random.Random) -> str:
    shutil.rmtree(world.offsets, ignore_errors=True)
    return ""


def _offsets_stale(world: World, table: str, dice: random.Random) -> str:
    """An older copy is put back: the table then knows less than the logs."""
    copy = world.folder / "offsets-copy"
    if copy.exists() and world.offsets.exists():
        shutil.rmtree(world.offsets)
        shutil.move(copy, world.offsets)
    elif world.offsets.exists():
        shutil.copytree(world.offsets, copy)
    return ""


def _left_overs(world: World, table: str, dice: random.Random) -> str:
    folder = world.table(table)
    (folder / f"part-00000-{dice.random()}.parquet").write_bytes(dice.randbytes(100))
    (folder / "_delta_log" / f".{dice.random()}.json.tmp").write_bytes(b"{")
    return ""


def _optimize(world: World, table: str, dice: random.Random) -> str:
    DeltaTable(str(world.table(table))).optimize.compact()
    return ""


def _vacuum(world: World, table: str, dice: random.Random) -> str:
    DeltaTable(str(world.table(table))).vacuum(48, enforce_retention_duration=False, dry_run=False)
    return ""


def _delta_checkpoint(world: World, table: str, dice: random.Random) -> str:
    DeltaTable(str(world.table(table))).create_checkpoint()
    return ""


def _clean_up(world: World, table: str, dice: random.Random) -> str:
    """Log clean-up takes all but the newest few commits, the newest entry among these."""
    delta = DeltaTable(str(world.table(table)))
    delta.create_checkpoint()
    log = world.table(table) / "_delta_log"
    shutil.rmtree(world.folder / "offsets-copy", ignore_errors=True)
    entries = [
        each for each in _versions(world.table(table)) if _has_entry(world.table(table), each)
    ]
    for version in range(min(max(entries), delta.version() - dice.randint(0, 4)) if entries else 0):
        for ending in ("json", "crc"):
            (log / f"{version:020d}.{ending}").unlink(missing_ok=True)
    return ""


def _partition_added(world: World, table: str, dice: random.Random) -> str:
    admin = world.admin()
    count = len(admin.list_topics(table, timeout=10).topics[table].partitions)
    if count < 6:
        for future in admin.create_partitions([NewPartitions(table, count + 1)]).values():
            future.result()
    return ""


def _broker_frozen(world: World, table: str, dice: random.Random) -> str:
    os.kill(world.broker.pid, signal.SIGSTOP)
    threading.Timer(2, os.kill, (world.broker.pid, signal.SIGCONT)).start()
    return ""


def _restore(world: World, table: str, dice: random.Random) -> str:
    """Back to one of the last versions; without effect where no entry came after it."""
    delta = DeltaTable(str(world.table(table)))
    oldest = min(_versions(world.table(table)))
    target = max(oldest, delta.version() - dice.randint(1, 4))
    undone = any(_has_entry(world.table(table), v) for v in range(target + 1, delta.version() + 1))
    if target == delta.version() or not undone:
        return ""
    delta.restore(target)
    return "RM411"


def _truncate(world: World, table: str, dice: random.Random) -> str:
    delta = DeltaTable(str(world.table(table)))
    if not delta.file_uris():
        return ""
    delta.delete()
    return "RM411"


def _versions(table: Path) -> list[int]:
    return [int(each.stem) for each in (table / "_delta_log").glob("*.json") if each.stem.isdigit()]


def _has_entry(table: Path, version: int) -> bool:
    return '"txn"' in (table / "_delta_log" / f"{version:020d}.json").read_text("utf-8")


DEEDS: Mapping[str, Deed] = {
    "checkpoints wiped": _checkpoints_wiped,
    "checkpoints corrupt": _checkpoints_corrupt,
    "offsets table gone": _offsets_gone,
    "offsets table stale": _offsets_stale,
    "left-over files": _left_overs,
    "optimize": _optimize,
    "vacuum": _vacuum,
    "delta checkpoint": _delta_checkpoint,
    "log clean-up": _clean_up,
    "partition added": _partition_added,
    "broker frozen": _broker_frozen,
    "restore": _restore,
    "truncate": _truncate,
}
