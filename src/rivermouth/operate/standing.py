"""Where a pipeline stood at a version of its table, at a time, or when an offset was read. No JVM.

Positions and times grow with the versions, but for rollbacks. So a few looks at the log find one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.errors import RangesRefused
from rivermouth.operate.history import NEVER, events
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import TopicPartition, nested
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import DeltaLog, record_of


@dataclass(frozen=True)
class Standing:
    """Where a pipeline stood at a version of its table: ``position`` is the next offset of each
    partition, ``sequence`` the newest entry in effect, 0 for none. ``address`` names the table.
    """

    version: int
    committed_at_ms: int
    sequence: int
    position: Mapping[TopicPartition, int]
    address: str

    @property
    def sql(self) -> str:
        """A statement for Spark that reads the table as it was."""
        return f"SELECT * FROM delta.`{self.address}` VERSION AS OF {self.version}"

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth at --json``."""
        return {
            "version": self.version,
            "committed_at_ms": self.committed_at_ms,
            "sequence": self.sequence,
            "position": nested(self.position),
            "sql": self.sql,
        }

    def since(self, earlier: Standing) -> Mapping[TopicPartition, tuple[int | None, int | None]]:
        """By partition, the next offset at ``earlier`` and here, where they differ. None: the
        partition was not read yet.
        """
        places = sorted({*self.position, *earlier.position})
        pairs = {each: (earlier.position.get(each), self.position.get(each)) for each in places}
        return {place: pair for place, pair in pairs.items() if pair[0] != pair[1]}

    def difference(self, earlier: Standing) -> dict[str, Any]:
        """The JSON of ``rivermouth at --diff --json``."""
        return {
            "from_version": earlier.version,
            "to_version": self.version,
            "partitions": [
                {"topic": each.topic, "partition": each.partition, "from": begin, "to": end}
                for each, (begin, end) in self.since(earlier).items()
            ],
        }


class Standings:
    """Finds where a pipeline stood. Each question reads a few commits of the log.

    Raises what ``history`` does, and RangesRefused for what the log does not hold.
    """

    def __init__(self, config: Config, pipeline: str, secrets: Secrets = unresolved) -> None:
        chosen, lake = config.pipelines[pipeline], Lake.of(config, secrets)
        self._name, self._address = chosen.ledger_name, lake.address(chosen.target.table)
        self._log = DeltaLog(lake.store(chosen.target.table))
        self._versions = self._log.versions()
        if not self._versions:
            raise RangesRefused("there is no table yet", where=self._address)

    @property
    def newest(self) -> int:
        """The newest version."""
        return self._versions[-1]

    def at_version(self, version: int) -> Standing:
        """That at a version that the log holds."""
        first, last = self._versions[0], self._versions[-1]
        if not first <= version <= last:
            raise RangesRefused(
                "the log does not hold that version",
                where=self._address,
                expected=f"versions {first:,} to {last:,}",
                found=f"{version:,}",
            )
        entry = self._entry_at(version)
        return Standing(
            version,
            self._committed_at(version),
            entry.sequence if entry is not None else 0,
            entry.position.offsets if entry is not None else {},
            self._address,
        )

    def at_time(self, moment_ms: float) -> Standing:
        """That at the newest version that was committed at ``moment_ms`` or before."""
        number = bisect_right(self._versions, moment_ms, key=self._committed_at)
        if not number:
            raise RangesRefused(
                "the first commit that the log holds came later",
                where=self._address,
                found=f"version {self._versions[0]:,}",
            )
        return self.at_version(self._versions[number - 1])

    def at_offset(self, place: TopicPartition, offset: int) -> Standing:
        """That at a version in which the record of this offset had been read, and before which it
        had not. There are several where a RESTORE took such a version back; it is one of them.
        """

        def reached(version: int) -> bool:
            entry = self._entry_at(version)
            return entry is not None and entry.position.offsets.get(place, NEVER) > offset

        if not reached(self._versions[-1]):
            entry = self._entry_at(self._versions[-1])
            stands = entry.position.get(place) if entry is not None else None
            raise RangesRefused(
                "that offset is not read yet",
                where=self._address,
                expected="no position" if stands is None else f"an offset below {stands:,}",
                found=f"{place}, offset {offset:,}",
            )
        return self.at_version(self._versions[bisect_left(self._versions, True, key=reached)])

    def _entry_at(self, version: int) -> Entry | None:
        """The entry in effect at a version; None: none is."""
        before = events(self._log.commits_backwards(version), self._name)
        return next((each.entry for each in before if each.stands and each.entry), None)

    def _committed_at(self, version: int) -> int:
        return record_of(version, self._log.actions(version)).timestamp_ms
