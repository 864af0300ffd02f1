"""What happens to a world while no driver runs, as data: name, deed, and the halt it must cause."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from deltalake import DeltaTable

from tests.faults.campaign.operating import parts
from tests.faults.campaign.world import TABLES, World
from tests.faults.checker.evidence import Place
from tests.faults.checker.kafka import Cluster
from tests.faults.checker.ledger import Ledger
from tests.faults.checker.log import Commit, Log
from tests.faults.checker.projection import Projection
from tests.waiting import add_partition, delete_records, partitions_of

Deed = Callable[[World, str, random.Random], str | None]
"""Does it to a table's world; returns the code that the next start must halt with, "" where it
must go on, and None where there was nothing to do it to."""


def strike(world: World, name: str, table: str, dice: random.Random) -> str | None:
    """Carry out one fault; returns what its deed does."""
    if not (world.table(table) / "_delta_log").exists():
        return None
    return DEEDS[name](world, table, dice)


def _checkpoints_wiped(world: World, table: str, dice: random.Random) -> str | None:
    shutil.rmtree(world.scratch / "checkpoints", ignore_errors=True)
    return ""


def _checkpoints_corrupt(world: World, table: str, dice: random.Random) -> str | None:
    folder = world.scratch / "checkpoints" / f"{table}-foreign" / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0").write_bytes(dice.randbytes(64))
    for file in (world.scratch / "checkpoints").rglob("offsets/*"):
        file.write_bytes(b"")
    return ""


def _offsets_gone(world: World, table: str, dice: random.Random) -> str | None:
    """Not once a log was cleaned up: the checker needs what only this table then knows."""
    if any(min(_versions(world.table(each)), default=0) > 0 for each in TABLES):
        return None
    shutil.rmtree(world.offsets, ignore_errors=True)
    return ""


def _offsets_stale(world: World, table: str, dice: random.Random) -> str | None:
    """An older copy is put back: the table then knows less than the logs."""
    copy = world.folder / "offsets-copy"
    if not world.offsets.exists():
        return None
    if not copy.exists():
        shutil.copytree(world.offsets, copy)
        return None
    shutil.rmtree(world.offsets)
    shutil.move(copy, world.offsets)
    return ""


def _index_damaged(world: World, table: str, dice: random.Random) -> str | None:
    """What the drivers keep of keys on the disk: each file may be of an older time, cut, altered,
    or gone.
    """
    files = sorted(each for each in (world.scratch / "keys").rglob("*") if each.is_file())
    copy = world.folder / "keys-copy"
    for file in files:
        content, how = bytearray(file.read_bytes() or b"{"), dice.randrange(5)
        before = copy / file.relative_to(world.scratch)
        if how == 0 and before.exists():
            content = bytearray(before.read_bytes())
        elif how == 1:
            del content[dice.randrange(len(content)) :]
        elif how == 2:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        before.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, before)
        file.unlink()
        if how < 4:
            file.write_bytes(content)
    return "" if files else None


def _left_overs(world: World, table: str, dice: random.Random) -> str | None:
    folder = world.table(table)
    (folder / f"part-00000-{dice.random()}.parquet").write_bytes(dice.randbytes(100))
    (folder / "_delta_log" / f".{dice.random()}.json.tmp").write_bytes(b"{")
    return ""


def _optimize(world: World, table: str, dice: random.Random) -> str | None:
    DeltaTable(str(world.table(table))).optimize.compact()
    return ""


def _vacuum(world: World, table: str, dice: random.Random) -> str | None:
    DeltaTable(str(world.table(table))).vacuum(48, enforce_retention_duration=False, dry_run=False)
    return ""


def _delta_checkpoint(world: World, table: str, dice: random.Random) -> str | None:
    DeltaTable(str(world.table(table))).create_checkpoint()
    return ""


def _clean_up(world: World, table: str, dice: random.Random) -> str | None:
    """Log clean-up takes all but the newest few commits, the newest entry among these.

    As Delta's does, it leaves a checkpoint of what it takes: the first commit that is left
    can be read as a version. It takes no entry that the offsets table does not know, none that
    names deleted rows, and none while an undoing would be left: the checker could not tell any
    more what stands.
    """
    path = world.table(table)
    commits = [*Log(path).update()]
    entries = [each.version for each in commits if each.txns]
    known = _projected(world, table)
    unknown = [each for each in entries if each not in known]
    first = min([commits[-1].version - dice.randint(0, 4), *entries[-1:], *unknown])
    left = [each for each in commits if each.version >= first]
    taken = [each for each in commits if each.version < first]
    named = any('"deletes"' in (each.metadata or "") for each in taken)
    if not entries or named or left == commits or any(_undoes(each) for each in left):
        return None
    DeltaTable(str(path), version=first - 1).create_checkpoint()
    shutil.rmtree(world.folder / "offsets-copy", ignore_errors=True)
    for version in range(first):
        for ending in ("json", "crc"):
            (path / "_delta_log" / f"{version:020d}.{ending}").unlink(missing_ok=True)
    return ""


def _partition_added(world: World, table: str, dice: random.Random) -> str | None:
    if partitions_of(world.servers, table) == 6:
        return None
    add_partition(world.servers, table)
    return ""


def _broker_frozen(world: World, table: str, dice: random.Random) -> str | None:
    os.kill(world.broker.pid, signal.SIGSTOP)
    threading.Timer(2, os.kill, (world.broker.pid, signal.SIGCONT)).start()
    return ""


def _broker_restarted(world: World, table: str, dice: random.Random) -> str | None:
    world.broker.stop()
    world.broker.start()
    return ""


def _records_deleted(world: World, table: str, dice: random.Random) -> str | None:
    """Kafka deletes some of what the ledger has passed and the checker has compared already."""
    passed = position(world, table)
    known = {place: min(until, world.checked(place)) for place, until in sorted(passed.items())}
    cuts = {place: dice.randint(1, until) for place, until in known.items() if until}
    for (topic, partition), before in cuts.items():
        delete_records(world.servers, topic, before, partition)
    return "" if cuts else None


def _restore(world: World, table: str, dice: random.Random) -> str | None:
    """Back to one of the last versions.

    Without effect where no entry came after it, or where Kafka has deleted what is to be read
    again from there: that would be a loss, and rightly halt. So would be a state before another
    topic was accepted. A DELETE is not taken back to without the entry that accepts it.
    """
    delta = DeltaTable(str(world.table(table)))
    oldest = min(_versions(world.table(table)))
    target = max(oldest, delta.version() - dice.randint(1, 4))
    undone = any(_has_entry(world.table(table), v) for v in range(target + 1, delta.version() + 1))
    if target == delta.version() or not undone or parts(world, table, target):
        return None
    if _is_forgotten(world, table, target):
        return None
    delta.restore(target)
    return "RM411"


def _truncate(world: World, table: str, dice: random.Random) -> str | None:
    delta = DeltaTable(str(world.table(table)))
    if not delta.file_uris():
        return None
    delta.delete()
    return "RM411"


def _is_forgotten(world: World, table: str, version: int) -> bool:
    """Whether Kafka no longer holds all that comes after what a version holds."""
    stands = position(world, table, version)
    bounds = Cluster(world.servers).bounds(position(world, table))
    return any(low > stands.get(place, 0) for place, (low, _) in bounds.items())


def position(world: World, table: str, version: int | None = None) -> Mapping[Place, int]:
    """The position that stands at a version of a table; at its newest unless named."""
    log = Log(world.table(table))
    ledger, commits = Ledger([table], table, []), log.update()
    ledger.foresee(commits)
    for commit in commits:
        ledger.take(commit)
    node = ledger.at(log.version if version is None else version)
    while node is not None and node.erased:
        node = node.before
    return node.said.position if node else {}


def _projected(world: World, table: str) -> set[int]:
    """The versions of a table whose entries the offsets table knows."""
    offsets = Projection(world.offsets)
    offsets.update()
    return {int(row["table_version"]) for row in offsets.rows(table)}


def _undoes(commit: Commit) -> bool:
    """Whether a commit undid others, or accepts that."""
    back = commit.operation == "RESTORE" or commit.emptied
    return back or '"accepts"' in (commit.metadata or "")


def _versions(table: Path) -> list[int]:
    return [int(each.stem) for each in (table / "_delta_log").glob("*.json") if each.stem.isdigit()]


def _has_entry(table: Path, version: int) -> bool:
    return '"txn"' in (table / "_delta_log" / f"{version:020d}.json").read_text("utf-8")


DEEDS: Mapping[str, Deed] = {
    "checkpoints wiped": _checkpoints_wiped,
    "checkpoints corrupt": _checkpoints_corrupt,
    "offsets table gone": _offsets_gone,
    "offsets table stale": _offsets_stale,
    "index damaged": _index_damaged,
    "left-over files": _left_overs,
    "optimize": _optimize,
    "vacuum": _vacuum,
    "delta checkpoint": _delta_checkpoint,
    "log clean-up": _clean_up,
    "partition added": _partition_added,
    "broker frozen": _broker_frozen,
    "broker restarted": _broker_restarted,
    "records deleted": _records_deleted,
    "restore": _restore,
    "truncate": _truncate,
}
