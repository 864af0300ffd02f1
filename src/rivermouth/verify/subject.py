"""What is verified of one pipeline: its ledger, what Kafka can still show of it, findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.config import Pipeline
from rivermouth.verify.kafka.source import Source
from rivermouth.verify.ledger.coverage import Coverage, Span
from rivermouth.verify.ledger.entry import Place
from rivermouth.verify.ledger.log import Ledger
from rivermouth.verify.result import Findings


@dataclass(frozen=True)
class Subject:
    """One pipeline under verification.

    ``readable`` is the part ``[start, until)`` of each covered partition that Kafka still
    holds under the recorded topic id. ``neighbours`` are topics that other pipelines write
    to the same table.
    """

    pipeline: Pipeline
    ledger: Ledger
    coverage: Coverage
    source: Source
    findings: Findings
    readable: Mapping[Place, tuple[int, int]]
    compacted: frozenset[str] = frozenset()
    neighbours: frozenset[str] = frozenset()

    def before_ledger(self, place: Place, offset: int) -> bool:
        """Whether log clean-up took the entry that this offset belongs to."""
        if not self.ledger.trimmed or not self.ledger.standing:
            return False
        span = self.coverage.spans.get(place)
        base = span.start if span else self.ledger.standing[0].position.get(place, 0)
        return offset < base

    def dark(self, place: Place, offset: int) -> bool:
        """Whether Kafka or the ledger can no longer say anything about an offset."""
        if self.before_ledger(place, offset):
            return True
        if place not in self.readable:
            return False
        start, until = self.readable[place]
        span = self.coverage.spans[place]
        return span.start <= offset < span.until and not start <= offset < until

    def whole(self, place: Place, span: Span, index: int) -> bool:
        """Whether the records of a range can be counted as they were first read."""
        start, until = self.readable[place]
        inside = start <= span.starts[index] and span.untils[index] <= until
        return bool(inside) and span.disjoint and place[0] not in self.compacted


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
