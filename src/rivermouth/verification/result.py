"""What a verification found: counts by kind, a few lines for people, and what is unchecked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, zip_longest
from typing import Any

from numpy.typing import NDArray

from rivermouth.verification.proved import Reach, Recording

PROBLEM_LINES = 20


class Kind(Enum):
    """The classes of findings; the value is the name in JSON. Any of them means not ok."""

    MISSING = "missing"
    """Visible in Kafka inside the ledger's ranges, without effect on the table."""
    DUPLICATED = "duplicated"
    """Twice in the table or in quarantine, or in both."""
    DIFFERENT = "different"
    """There, but with other values, from another record or with other bytes than in Kafka."""
    UNEXPECTED = "unexpected"
    """In the table or in quarantine, but not visible in Kafka, or in no range."""
    GAP = "gaps"
    OVERLAP = "overlaps"
    FAULT = "faults"
    """Something else is wrong with the ledger, the source or the table."""
    OFFSETS_TABLE = "offsets_table_differences"
    QUARANTINE = "wrongly_quarantined"
    """In quarantine, although the record gives all columns."""


class Unchecked(Enum):
    """What could not be checked; the value is the name in JSON. Only with ``strict`` not ok."""

    TABLE = "tables"
    """There is no table, or its rows cannot be read."""
    ENTRIES = "removed_entries"
    """Log clean-up removed entries of the ledger, and with them what they covered."""
    LOST = "lost_offsets"
    """The ledger records them as lost."""
    EXPIRED = "expired_offsets"
    """Kafka no longer holds them."""
    DELETED = "offsets_of_deleted_topics"
    OTHER_TOPIC = "topics_of_other_identity"
    """Another cluster, or another topic of the same name."""
    ENDED = "offsets_after_the_end"
    """Kafka's log ends before them."""
    UNCOVERED = "offsets_of_uncovered_partitions"
    """No entry tells of these partitions: the next run reads them, or halts there."""
    COMPACTED = "compacted_rows"
    """Kafka compacts their topic, or does not tell that, and may have removed their records."""
    TRIMMED = "rows_of_removed_entries"
    FORMER = "rows_before_accepted_changes"
    """Their records are gone since an operator accepted a change of the source."""
    RETIRED = "rows_of_retired_pipelines"
    """Their pipelines are no longer configured, so nobody verifies them."""
    KEYS = "keys"
    """Records that decide about them cannot be read any more."""
    VALUES = "values"
    """``verify`` cannot tell what Spark makes of them."""
    MADE = "rows_of_own_code"
    """Their coordinates were compared, not their values: the pipeline's own code made them."""
    LEFT_OUT = "records_left_out"
    """The pipeline's own code gave no row for them; nobody can tell whether it should have."""
    EXPLODED = "exploded_records"
    """The pipeline's own code may give a record any number of rows; nobody can tell how many."""
    UNCOUNTED = "rows_not_counted"
    """Nobody can tell how many rows an entry wrote, or which of the rows are its own."""
    SAMPLED = "values_not_compared"
    """Of so many offsets only some have their values compared."""
    ERASED = "rows_of_accepted_deletes"
    """Missing, as many as accepted DELETEs took; nobody can tell which those were."""
    PROJECTED = "offsets_table_rows"
    """They may have been deleted, as ``offsets_retention`` says."""
    VERDICTS = "quarantined_records"
    """``verify`` cannot tell whether they belong in quarantine."""
    SINK = "rows_in_a_function"
    """They were given to a function of the user."""
    NOT_SENT = "records_not_in_the_sink"
    """They were not sent, as ``at-most-once`` allows; or the topic does not hold them any more."""
    AHEAD = "records_sent_ahead"
    """They were sent, and are in no entry of the ledger that was read."""
    FOREIGN = "commits_of_others"
    """They may have changed rows of entries that were not read again."""


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class Findings:
    """Collects what is found while one pipeline is verified.

    ``strict``: what could not be checked makes the pipeline fail too.
    """

    def __init__(self, name: str, *, strict: bool = False) -> None:
        self.name = name
        self.strict = strict
        self.entries = 0
        self.records = 0
        self.quarantined = self.skipped = 0
        self.lost = self.erased = 0
        self.superseded: int | None = None
        self.repeated: int | None = None
        self.earlier_keys = 0
        self.reach: Reach | None = None
        self.read_all: str | None = None
        self.accepted: list[str] = []
        self.unchecked: list[str] = []
        self.not_told: list[str] = []
        self._counts: Counter[Kind] = Counter()
        self._left: Counter[Unchecked] = Counter()
        self._lines: dict[Kind, list[str]] = {kind: [] for kind in Kind}

    def add(self, kind: Kind, *lines: str, count: int | None = None) -> None:
        """Count ``count`` findings (default: one per line) and keep the first few lines."""
        self._counts[kind] += len(lines) if count is None else count
        room = PROBLEM_LINES - len(self._lines[kind])
        self._lines[kind] += lines[: max(0, room)]

    def add_offsets(
        self,
        kind: Kind,
        partition: str,
        offsets: Sequence[int] | NDArray[Any],
        what: str,
        count: int | None = None,
    ) -> None:
        """Count a finding for each offset, or ``count``; a line is ``t-0@5: what``."""
        lines = [f"{partition}@{offset}: {what}" for offset in offsets[:PROBLEM_LINES]]
        self.add(kind, *lines, count=len(offsets) if count is None else count)

    def leave(self, what: Unchecked, line: str, count: int = 1) -> None:
        """Say that ``count`` of something could not be checked; nothing where it is 0."""
        if count:
            self._left[what] += count
            self.unchecked.append(line)

    def proof(self) -> PipelineProof:
        """Everything found so far, as a value."""
        return PipelineProof(
            name=self.name,
            entries=self.entries,
            records=self.records,
            quarantined=self.quarantined,
            skipped=self.skipped,
            lost=self.lost,
            erased=self.erased,
            superseded=self.superseded,
            repeated=self.repeated,
            accepted=tuple(self.accepted),
            counts={kind: self._counts[kind] for kind in Kind},
            unchecked=tuple(self.unchecked),
            not_told=tuple(dict.fromkeys(self.not_told)),
            left={what: self._left[what] for what in Unchecked if what in self._left},
            problems=self._problems(),
            strict=self.strict,
            reach=self.reach,
            read_all=self.read_all,
        )

    def _problems(self) -> tuple[str, ...]:
        """At most ``PROBLEM_LINES``, some of every kind, and how many more there are."""
        mixed = chain.from_iterable(zip_longest(*self._lines.values()))
        shown = [line for line in mixed if line is not None][:PROBLEM_LINES]
        total = self._counts.total()
        more = total - len(shown)
        return (*shown, f"and {more:,} more, {total:,} in all") if more > 0 else tuple(shown)


@dataclass(frozen=True)
class PipelineProof:
    """What was found of one pipeline.

    ``records`` are those that a read_committed consumer sees in the ledger's ranges;
    ``superseded`` (newest row of each key) had their effect and were replaced or deleted later.
    ``repeated`` (first row of each key) came after the first record of their key, or (a pipeline
    that sends) were sent again.
    ``unchecked`` says what could not be checked, and ``left`` how much of it; it makes a pipeline
    fail only where the verification is ``strict``.
    """

    name: str
    entries: int
    records: int
    quarantined: int
    superseded: int | None
    repeated: int | None = None
    skipped: int = 0
    """Records without a value, of which an append makes no row."""
    lost: int = 0
    """Offsets that the ledger records as lost: Kafka had deleted them before they were read."""
    erased: int = 0
    """Records whose rows are gone on purpose, each named by an accepted DELETE."""
    accepted: tuple[str, ...] = ()
    """The changes of source and settings that an operator accepted, a line for each entry."""
    counts: dict[Kind, int] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    not_told: tuple[str, ...] = ()
    """What the broker does not tell this login, a line for each."""
    left: dict[Unchecked, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    strict: bool = False
    reach: Reach | None = None
    """The entries that were verified; None where there is none."""
    read_all: str | None = None
    """Why everything was read although only a part was asked for."""
    recording: Recording | None = None
    """What is on record after this verification; None where nothing is to be recorded."""

    @property
    def found(self) -> int:
        """How many findings there are."""
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Nothing was found, and everything was checked where that is asked for."""
        return not self.found and (self.complete or not self.strict)

    @property
    def complete(self) -> bool:
        """Everything could be checked."""
        return not self.left

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of one pipeline."""
        facts: dict[str, Any] = {
            "name": self.name,
            "ok": self.ok,
            "complete": self.complete,
            "entries": self.entries,
            "records": self.records,
            "quarantined": self.quarantined,
            "skipped": self.skipped,
            "lost": self.lost,
            "erased": self.erased,
        }
        if self.superseded is not None:
            facts["superseded"] = self.superseded
        if self.repeated is not None:
            facts["repeated"] = self.repeated
        facts.update({kind.value: self.counts.get(kind, 0) for kind in Kind})
        facts["not_checked"] = {what.value: number for what, number in self.left.items()}
        facts["accepted"] = list(self.accepted)
        facts["not_told"] = list(self.not_told)
        before = self.reach.before if self.reach is not None else None
        facts["since"] = before.as_dict() if before is not None else None
        facts["read_everything"] = self.read_all
        facts["proof"] = self.recording.as_dict() if self.recording is not None else None
        return {**facts, "unchecked": list(self.unchecked), "problems": list(self.problems)}


@dataclass(frozen=True)
class Verification:
    """What was found of each selected pipeline, in the order of the configuration."""

    pipelines: Sequence[PipelineProof]

    @property
    def ok(self) -> bool:
        """Nothing was found in any pipeline."""
        return all(each.ok for each in self.pipelines)

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth verify --json``."""
        return {"ok": self.ok, "pipelines": [each.as_dict() for each in self.pipelines]}
