"""The offsets table says what the ledger says, each row once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.faults.checker.data_files import DataFile
from tests.faults.checker.entry import Changes, Entry, Move, RowCounts, Span
from tests.faults.checker.evidence import Place, shown
from tests.faults.checker.log import Log
from tests.faults.checker.verdict import Fault, Finding

Row = Mapping[str, Any]
Counts = Sequence[RowCounts]
COUNTED = ("applied", "quarantined", "skipped")


class Projection:
    """The offsets table at ``path``; ``update`` reads what is new."""

    def __init__(self, path: Path) -> None:
        self.log = Log(path)
        self._rows: list[Row] = []
        self._seen: set[DataFile] = set()

    def update(self) -> None:
        """Read the rows that came since; all of them where rows were taken away."""
        self.log.update()
        files = set(self.log.files)
        if not self._seen <= files:
            self._rows, self._seen = [], set()
        for file in files - self._seen:
            with self.log.reading(file):
                self._rows += file.rows(self.log.path)
        self._seen = files

    def rows(self, pipeline: str) -> list[Row]:
        """The rows of a pipeline, in the order of the entries."""
        mine = [each for each in self._rows if each["pipeline"] == pipeline]
        return sorted(mine, key=lambda each: (each["sequence"], each["topic"], each["partition"]))

    def entries(self, pipeline: str, before: int) -> list[Entry]:
        """The entries that log clean-up has taken: those at versions before ``before``."""
        taken = [each for each in self.rows(pipeline) if each["table_version"] < before]
        position: dict[Place, int] = {}
        topics: dict[str, str] = {}
        found: list[Entry] = []
        for sequence, group in groupby(taken, key=lambda each: int(each["sequence"])):
            rows = [*group]
            spans = tuple(_span(each) for each in rows)
            now = {each["topic"]: each["topic_id"] for each in rows}
            others = {each for each, known in topics.items() if now.get(each, known) != known}
            changes = _topic_changes(others, topics, position, spans) if others else None
            back = any(span.until < position.get(span.place, 0) for span in spans)
            resumed = back and not changes and all(span.start == span.until for span in spans)
            position |= {span.place: span.until for span in spans}
            topics |= now
            found.append(
                Entry(
                    pipeline=pipeline,
                    version=rows[0]["table_version"],
                    sequence=sequence,
                    commit=rows[0]["commit"],
                    cluster=rows[0]["cluster_id"],
                    topics=dict(topics),
                    spans=spans,
                    position=dict(position),
                    rows=tuple(RowCounts(*(each[what] for what in COUNTED)) for each in rows),
                    ends={_span(each).place: each["end_offset"] for each in rows},
                    accepts="restore" if resumed else None,
                    changes=changes,
                )
            )
        return found


def _topic_changes(
    others: Collection[str],
    topics: Mapping[str, str],
    position: Mapping[Place, int],
    spans: Sequence[Span],
) -> Changes:
    """What an entry has accepted that found other topics: all that these rows tell of it."""
    moved = [
        Move(span.place, position.get(span.place), span.start)
        for span in spans
        if span.place[0] in others
    ]
    return Changes(("topic",), topics={each: topics[each] for each in others}, moved=tuple(moved))


def judge(
    rows: Sequence[Row],
    entries: Sequence[Entry],
    counts: Mapping[str, Counts | None],
    *,
    settled: bool,
) -> Iterator[Finding]:
    """Compare the rows of one pipeline with its entries.

    ``counts`` are applied, quarantined and skipped records per range, by commit, where they are
    known.
    The newest entry may be missing while a driver is dead, that is, unless ``settled``.
    """
    if not entries:
        return
    due = [row for entry in entries for row in _due(entry, counts.get(entry.commit))]
    first = entries[0].sequence
    found = [each for each in rows if each["sequence"] >= first]
    newest = max((each["sequence"] for each in found), default=0)
    if not settled:
        due = [each for each in due if each["sequence"] <= newest]
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        by_key.setdefault(_key(row), []).append(row)
    for wanted in due:
        there = by_key.pop(_key(wanted), [])
        yield from _compare(wanted, there)
    for left in by_key.values():
        yield _finding(left[0], f"{len(left)} rows of no entry")


def contiguous(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Entries that only the offsets table knows must follow on each other."""
    position: dict[Place, int] = {}
    for before, entry in zip([None, *entries], entries, strict=False):
        where = f"{entry.pipeline} {entry} in the offsets table"
        if before is not None and entry.sequence != before.sequence + 1:
            yield Finding(Fault.PROJECTION, where, f"follows on {before.sequence}")
        for span in entry.spans:
            stands = position.get(span.place, span.start)
            if span.start != stands and entry.accepts is None and entry.changes is None:
                yield Finding(Fault.PROJECTION, where, f"{span} follows on {stands}")
            position[span.place] = span.until


def _due(entry: Entry, counts: Counts | None) -> Iterator[Row]:
    stated: Counts | None = entry.rows or counts
    for index, span in enumerate(entry.spans):
        topic, partition = span.place
        row = {
            "pipeline": entry.pipeline,
            "sequence": entry.sequence,
            "topic": topic,
            "partition": partition,
            "from_offset": span.start,
            "until_offset": span.until,
            "end_offset": entry.ends.get(span.place),
            "table_version": entry.version,
            "commit": entry.commit,
            "topic_id": entry.topics.get(topic),
            "cluster_id": entry.cluster,
        }
        if stated is not None:
            row |= {"records": sum(stated[index])}
            row |= dict(zip(COUNTED, stated[index], strict=True))
        yield row


def _compare(wanted: Row, there: Sequence[Row]) -> Iterator[Finding]:
    if len(there) != 1:
        yield _finding(wanted, f"{len(there)} rows, one was due")
    for row in there:
        differing = {name: row[name] for name, value in wanted.items() if row[name] != value}
        if differing:
            due = {name: wanted[name] for name in differing}
            yield _finding(wanted, f"says {differing}, the ledger {due}")


def _key(row: Row) -> tuple[Any, ...]:
    return row["sequence"], row["topic"], row["partition"]


def _span(row: Row) -> Span:
    return Span((row["topic"], row["partition"]), row["from_offset"], row["until_offset"])


def _finding(row: Row, what: str) -> Finding:
    place = shown((row["topic"], row["partition"]))
    return Finding(Fault.PROJECTION, f"{row['pipeline']} entry {row['sequence']} {place}", what)
