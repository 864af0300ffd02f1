"""The edge to a Delta log that lies at a path: read as plain files, without Spark.

Reading back after a commit looks at one new JSON file, and a start at those of the log's end. The
snapshot's own facts (table id, ``txn`` versions) come through deltalake, which knows checkpoints.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow import ArrowException

from rivermouth.errors import LedgerBroken, LogUnreadable, ProjectionFailed
from rivermouth.protocol.commits import CommitRecord, Recorded, deleted_rows
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.protocol.ways import WRITER_FEATURES, Definition
from rivermouth.warehouse.ports import TableFacts


def newest_record_ms(statistics: Iterable[Mapping[str, Any]]) -> int | None:
    """The greatest ``_kafka.timestamp`` that Delta noted of these files, in ms since 1970."""
    greatest = [each.get("maxValues", {}).get("_kafka", {}) for each in statistics]
    texts = [each["timestamp"] for each in greatest if each.get("timestamp")]
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    return int(max(times).timestamp() * 1000) if times else None


def definition_of(table: DeltaTable) -> Definition:
    """What the log of a table says of it."""
    protocol, metadata = table.protocol(), table.metadata()
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    legacy = frozenset() if protocol.min_writer_version == WRITER_FEATURES else frozenset(listed)
    return Definition(
        reader=protocol.min_reader_version,
        writer=protocol.min_writer_version,
        features=frozenset(listed) - legacy,
        properties=dict(metadata.configuration),
        schema=json.loads(table.schema().to_json()),
        partitions=tuple(metadata.partition_columns),
    )


_SECONDS = {"second": 1.0, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SECONDS |= {"microsecond": 1e-6, "millisecond": 1e-3}
_PART = rf"(\d+)\s*({'|'.join(_SECONDS)})s?\b"
_INTERVAL = re.compile(rf"\s*(?:interval\b)?\s*(?:{_PART}\s*)+")
_DAY_S = 86400.0
_CHECKPOINT_FILE = re.compile(r"^(\d{20})\.checkpoint.*\.(parquet|json)$")
_COMMIT_FILE = re.compile(r"^(\d{20})\.json$")


def interval_s(text: str) -> float | None:
    """A duration of Delta's, like ``interval 30 days``, in seconds; None: not understood."""
    if not _INTERVAL.fullmatch(text.lower()):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text.lower()))


def duration_s(text: str | None) -> float:
    """How long log clean-up leaves commits, by that setting of a table, in seconds.

    Delta's 30 days where there is none; one day where it is not understood: better an entry is
    written again too soon.
    """
    if text is None:
        return 30 * _DAY_S
    understood = interval_s(text)
    return _DAY_S if understood is None else understood


class FolderLog:
    """The log of the Delta table at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path / "_delta_log"

    def versions(self) -> list[int]:
        """The versions whose commits are there, in order.

        Raises LedgerBroken where one is missing; Spark would just fail. The first ones may be, once
        a checkpoint stands for them.
        """
        names = self._names()
        versions = _versions(names, _COMMIT_FILE)
        checkpoints = (each for each in names if ".checkpoint" in each)
        checkpointed = max(_versions(checkpoints, _CHECKPOINT_FILE), default=-1)
        stands = [checkpointed] if versions and versions[0] > checkpointed + 1 else []
        for before, version in pairwise((*stands, *versions)):
            if version != before + 1:
                raise LedgerBroken(
                    "a commit is missing in the log",
                    where=str(self.path),
                    expected=f"version {before + 1}",
                    found=f"version {version}",
                    remedy="Bring the file back from a backup of _delta_log",
                )
        return versions

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order. Versions may start above 0 after clean-up."""
        for version in _versions(self._names(), _COMMIT_FILE):
            yield record_of(version, self._actions(version))

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, by looking for each next file."""
        following = version + 1
        while (actions := self._read(following)) is not None:
            yield record_of(following, actions)
            following += 1

    def commits_backwards(self) -> Iterator[CommitRecord]:
        """Every readable commit, the newest first: a look at the end of a long log.

        Of what is not read, at least no file may be missing: raises LedgerBroken.
        """
        for version in reversed(self.versions()):
            yield record_of(version, self._actions(version))

    def newest_record_ms(self, version: int) -> int | None:
        """See ``ports.LedgerLog``: from the statistics of the files that the commit added."""
        actions = self._actions(version)
        texts = [each["add"].get("stats") for each in actions if "add" in each]
        return newest_record_ms(json.loads(text) for text in texts if text)

    def added_files(self, version: int) -> list[Path]:
        """The data files that one commit added."""
        actions = self._actions(version)
        return [self.path / unquote(each["add"]["path"]) for each in actions if "add" in each]

    def files(self) -> list[Path]:
        """The data files of the newest snapshot."""
        return [Path(unquote(each)) for each in DeltaTable(str(self.path)).file_uris()]

    def table(self, app: str) -> TableFacts:
        """See ``ports.LedgerLog``. The ``txn`` outlives clean-up."""
        table = self._table()
        metadata = table.metadata()
        retention = metadata.configuration.get("delta.logRetentionDuration")
        txn = table.transaction_version(app) or 0
        return TableFacts(str(metadata.id), txn, duration_s(retention))

    def _table(self) -> DeltaTable:
        try:
            return DeltaTable(str(self.path))
        except OSError as fault:
            raise _unreadable(self._log, fault) from fault
        except DeltaError as fault:  # a checkpoint that is damaged, for one
            raise LedgerBroken(
                "the log cannot be read", where=str(self.path), found=str(fault)
            ) from fault

    def _names(self) -> list[str]:
        """The names of the files in the log; none where there is no table."""
        try:
            return os.listdir(self._log)  # iterdir() takes twice as long over 100,000 commits
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as fault:
            raise _unreadable(self._log, fault) from fault

    def _actions(self, version: int) -> list[dict[str, Any]]:
        actions = self._read(version)
        if actions is None:
            raise LedgerBroken("a commit is gone", where=str(self._file(version)))
        return actions

    def _file(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def _read(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of a commit; None where there is no such file."""
        file = self._file(version)
        try:
            # Not splitlines(): statistics hold text of the users, U+2028 for one.
            lines = file.read_text("utf-8").split("\n")
            actions = [json.loads(line) for line in lines if line.strip()]
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise _unreadable(file, fault) from fault
        except ValueError as fault:
            what, found = "a commit cannot be read", repr(fault)
            raise LedgerBroken(what, where=str(file), found=found) from fault
        if not actions or not all(isinstance(each, dict) for each in actions):
            raise LedgerBroken("a commit is empty or torn", where=str(file))
        return actions


def _versions(names: Iterable[str], pattern: re.Pattern[str]) -> list[int]:
    """The versions in the names of files of one kind, in order."""
    return sorted(int(match[1]) for name in names if (match := pattern.match(name)))


def _unreadable(file: Path, fault: Exception) -> LogUnreadable:
    return LogUnreadable("a commit cannot be read", where=str(file), found=repr(fault))


def record_of(version: int, actions: Sequence[Mapping[str, Any]]) -> CommitRecord:
    """One commit's actions as the ledger looks at them. Raises LedgerBroken."""
    info: Mapping[str, Any] = {}
    txns: dict[str, int] = {}
    try:
        for each in actions:
            if "commitInfo" in each:
                info = each["commitInfo"]
            elif "txn" in each:
                txns[each["txn"]["appId"]] = int(each["txn"]["version"])
        return CommitRecord(
            version=version,
            timestamp_ms=int(info.get("inCommitTimestamp") or info.get("timestamp") or 0),
            operation=str(info.get("operation", "")),
            parameters=info.get("operationParameters") or {},
            txns=txns,
            user_metadata=info.get("userMetadata"),
            deleted_rows=deleted_rows(info.get("operationMetrics")),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        where = f"version {version}"
        raise LedgerBroken("a commit cannot be read", where=where, found=repr(fault)) from fault


Integers = npt.NDArray[np.integer[Any]]
_COORDINATES = ["_kafka.topic", "_kafka.partition", "_kafka.offset"]


def with_counts(log: FolderLog, entries: Sequence[Recorded]) -> list[Recorded]:
    """The same entries with their counts.

    Where an entry has none, they are counted in the files that its commit added; where VACUUM has
    taken one of them, in the whole table as it is now, whose rows still say where they came from.
    Raises ProjectionFailed where these cannot be read either.
    """
    unknown = [each for each in entries if each.entry.rows is None]
    try:
        counts = _all_counts(log, unknown)
    except (OSError, ArrowException) as fault:
        raise ProjectionFailed(
            "the commits stand, but the rows of their files cannot be counted",
            where=str(log.path),
            found=str(fault),
            remedy="See with 'rivermouth verify' what the table holds; then run again",
        ) from fault
    return [
        each.counted(counts[each.version]) if each.entry.rows is None else each for each in entries
    ]


def _all_counts(log: FolderLog, entries: Sequence[Recorded]) -> dict[int, Counts]:
    """The counts of each entry, by the version of its commit.

    Each in files of its own while they are there: since an accepted change of the source, rows of
    several entries may have the same coordinates.
    """
    added = [[*log.added_files(each.version)] for each in entries]
    there = [all(file.exists() for file in files) for files in added]
    pairs = [*zip(entries, added, there, strict=True)]
    left = [one for each, _, here in pairs if not here for one in each.entry.ranges]
    table = dict(zip(left, count_rows(log.files(), left), strict=True)) if left else {}
    return {
        each.version: count_rows(files, each.entry.ranges)
        if here
        else tuple(RowCounts(min(table[one].applied, one.span), 0) for one in each.entry.ranges)
        for each, files, here in pairs
    }


def count_rows(files: Iterable[Path], ranges: Sequence[OffsetRange]) -> tuple[RowCounts, ...]:
    """Rows of each range among ``files``, as applied records. Ranges must not overlap."""
    found: Counter[OffsetRange] = Counter()
    by_partition: dict[TopicPartition, list[OffsetRange]] = {}
    for each in sorted(each for each in ranges if each.span):
        by_partition.setdefault(each.topic_partition, []).append(each)
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=1 << 18, columns=_COORDINATES):
                for place, offsets in _by_partition(batch):
                    its_ranges = by_partition.get(place, [])
                    starts = np.searchsorted(offsets, [each.from_offset for each in its_ranges])
                    ends = np.searchsorted(offsets, [each.until_offset for each in its_ranges])
                    found.update(dict(zip(its_ranges, (ends - starts).tolist(), strict=True)))
    return tuple(RowCounts(found[each], 0) for each in ranges)


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, Integers]]:
    """The offsets of each partition that has rows in the batch, in order.

    The rows are sorted once for all partitions: looking for each of them would take as many passes.
    """
    topics, partitions, offsets = batch.column("_kafka").flatten()
    topics = topics.dictionary_encode()
    places = topics.indices.to_numpy().astype(np.int64) << 32 | partitions.to_numpy()
    order = np.lexsort((offsets.to_numpy(), places))
    places, ordered = places[order], offsets.to_numpy()[order]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    for start, here in zip(starts, np.split(ordered, starts[1:]), strict=True):
        topic = topics.dictionary[int(places[start]) >> 32].as_py()
        yield TopicPartition(topic, int(places[start]) & 0xFFFFFFFF), here
