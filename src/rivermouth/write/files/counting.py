"""Which decoded rows are good, and how many records of each kind each partition has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.errors import BatchFailed
from rivermouth.formats.arrow import SKIPPED
from rivermouth.protocol.entry import Counts, RowCounts
from rivermouth.protocol.offsets import OffsetRange


def good(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a decoded batch without a code."""
    codes = rows.column("code")
    return rows if codes.null_count == len(codes) else rows.filter(pc.is_null(codes))


def bad(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a decoded batch that go to quarantine."""
    return rows.filter(pc.not_equal(rows.column("code"), SKIPPED))


@dataclass
class Counted:
    """How many good and bad records were met, and how many to skip, by topic and partition."""

    good: Counter[tuple[str, int]] = field(default_factory=Counter)
    bad: Counter[tuple[str, int]] = field(default_factory=Counter)
    skipped: Counter[tuple[str, int]] = field(default_factory=Counter)

    def add(self, kafka: pa.StructArray, codes: pa.Array) -> None:
        """Take records by where they came from, and their codes; null: good."""
        if codes.null_count == len(codes):
            self.good.update(counted(kafka))
            return
        self.good.update(counted(kafka.filter(codes.is_null())))
        self.bad.update(counted(kafka.filter(pc.not_equal(codes, SKIPPED))))
        self.skipped.update(counted(kafka.filter(pc.equal(codes, SKIPPED))))

    def __bool__(self) -> bool:
        """Whether any record was met."""
        return bool(self._places)

    def update(self, other: Counted) -> None:
        """Take what another one has counted."""
        self.good.update(other.good)
        self.bad.update(other.bad)
        self.skipped.update(other.skipped)

    def to_json(self) -> str:
        """Of each partition: topic, number, and the good, bad and skipped records."""
        return json.dumps([[*each, *self._at(each)] for each in sorted(self._places)])

    @staticmethod
    def from_json(text: str) -> Counted:
        """What ``to_json`` has told."""
        found = Counted()
        for topic, partition, good, bad, skipped in json.loads(text):
            found.good[topic, partition], found.bad[topic, partition] = good, bad
            found.skipped[topic, partition] = skipped
        return found

    @property
    def _places(self) -> set[tuple[str, int]]:
        return {*self.good, *self.bad, *self.skipped}

    def _at(self, place: tuple[str, int]) -> tuple[int, int, int]:
        return self.good[place], self.bad[place], self.skipped[place]

    def of(self, ranges: Sequence[OffsetRange], where: str) -> Counts:
        """The counts of the ranges, in their order; ``where`` is the pipeline.

        Raises BatchFailed where they cannot be right.
        """
        counts = []
        for each in ranges:
            counts.append(RowCounts(*self._at((each.topic, each.partition))))
            if counts[-1].records > each.span:
                raise other_records(where, f"{counts[-1].records} of {each}")
        beyond = self._places - {(each.topic, each.partition) for each in ranges}
        if beyond:
            raise other_records(where, f"records of {sorted(beyond)}")
        return tuple(counts)


def other_records(where: str, found: str) -> BatchFailed:
    """Kafka has changed what it holds while a batch was read. ``where`` is the pipeline."""
    what = "Kafka gave other records than those of the batch"
    return BatchFailed(what, where=where, expected="at most one for each offset", found=found)


def counted(kafka: pa.StructArray) -> Counter[tuple[str, int]]:
    """How many rows came of each topic and partition."""
    if not len(kafka):
        return Counter()
    topic, partition = (kafka[0][name] for name in ("topic", "partition"))
    same = pc.and_(
        pc.equal(kafka.field("partition"), partition), pc.equal(kafka.field("topic"), topic)
    )
    if same.true_count == len(kafka):  # as nearly always
        return Counter({(topic.as_py(), partition.as_py()): len(kafka)})
    places = pa.table({name: kafka.field(name) for name in ("topic", "partition")})
    groups = places.group_by(["topic", "partition"]).aggregate([([], "count_all")])
    columns = (groups.column(name).to_pylist() for name in ("topic", "partition", "count_all"))
    return Counter({(topic, partition): n for topic, partition, n in zip(*columns, strict=True)})
