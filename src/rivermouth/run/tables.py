"""The status of all pipelines, and what a topic holds, as tables for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from rivermouth.operate.facts import Layout
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.operate.topic_report import Reader, Reading, TopicReport
from rivermouth.protocol.kafka_facts import NOTHING_WAITS, Outlook, Retention, TimeLeft, in_words
from rivermouth.run.outcome import ago, at, proof_note, proved
from rivermouth.run.text import duration, note, number, text_table, wrapped
from rivermouth.warehouse.lake.retry_notes import Retrying

_HEADERS = ("pipeline", "state", "entry", "lag\n(offsets)", "lag\n(time)", "proved up to", "table")
_NUMBERS = (2, 3, 4)


def status_table(found: Status, now: Callable[[], float] = time.time) -> str:
    """A table, at most 80 columns wide, and after it what is to be known besides."""
    every, now_s = found.pipelines, now()
    lines = [text_table(_HEADERS, [_row(each, now_s) for each in every], numbers=_NUMBERS)]
    lines += [f"{each.name}: {each.reason}" for each in every if each.reason]
    lines += [note(each.name, _retried(each.retrying, now_s)) for each in every if each.retrying]
    lines += [
        f"{each.name}: accepted: {kind}, in entry {entry}"
        for each in every
        for kind, entry in each.accepted
    ]
    proofs = ((each.name, proof_note(each.proof, now_s)) for each in every if each.proof)
    lines += [note(name, text) for name, text in proofs if text]
    lines += [note(each.name, each.mirror.line()) for each in every if each.mirror]
    lines += [note(each.name, str(each.way)) for each in every if each.way and each.way.reason]
    lines += [note(each.name, told) for each in every if (told := _keeps_up(each))]
    layouts = [(each.name, each.layout) for each in every if each.layout]
    lines += [note(name, _lies(it, now_s)) for name, it in layouts if not it.is_plain]
    return "\n".join(lines)


def _row(each: PipelineStatus, now_s: float) -> tuple[str, ...]:
    return (
        each.name,
        each.state.value,
        number(each.sequence),
        number(each.lag_messages),
        "-" if each.lag_seconds is None else duration(each.lag_seconds),
        "-" if each.sequence is None else proved(each.proof, now_s),
        each.table,
    )


def _keeps_up(each: PipelineStatus) -> str:
    """What is known of the records that wait; empty where none does."""
    if each.waiting is None:
        return ""
    rate, left = each.pace.offsets_per_s, each.waiting.left
    told = [f"commits read {rate:,.0f} offsets a second"] if rate else []
    if each.caught_up_in_s is not None:
        told.append(f"nothing waits in {duration(each.caught_up_in_s)} if that goes on")
    if left.seconds is not None:
        told.append(f"Kafka keeps what waits for {duration(left.seconds)}")
    return "; ".join(told)


def _lies(layout: Layout, now_s: float) -> str:
    last = layout.compacted
    return layout.line("" if last is None else ago(now_s - last.at_ms / 1000))


def _retried(left: Retrying, now_s: float) -> str:
    since, last = (ago(now_s - ms / 1000) for ms in (left.since_ms, left.at_ms))
    tries = "once" if left.tries == 1 else f"{left.tries:,} times"
    return f"a run tried it again, {tries}, first {since}, last {last}: {left.reason}"


_WORDS = {
    Outlook.NOTHING_WAITS: "nothing waits",
    Outlook.KEPT: "not deleted",
    Outlook.BY_SIZE: "unknown: by size",
    Outlook.GONE: "deleted",
    Outlook.UNKNOWN: "unknown",
}


def topic_table(found: TopicReport) -> str:
    """Partitions, and who reads them: tables at most 80 columns wide, with what they rest on."""
    unknown = [f"{part}: unknown: {why}" for part, why in found.unknown.items()]
    lines = [_partitions(found), "", *_folded([*_sums(found), *unknown])]
    if found.readers:
        lines += ["", _readers(found), "", *_folded(_notes(found.readers, found.unknown.values()))]
    else:
        lines.append("no pipeline of the configuration reads it")
    return "\n".join(lines)


def _folded(lines: Iterable[str]) -> list[str]:
    return [wrapped(each, "  ", "") for each in lines]


def _partitions(found: TopicReport) -> str:
    headers = ["partition", "leader", "replicas", "in sync", "earliest", "stable", "latest"]
    rows = [
        [
            str(each.kept.partition),
            "none" if each.kept.leader is None else str(each.kept.leader),
            ",".join(map(str, each.kept.replicas)),
            ",".join(map(str, each.kept.in_sync)),
            *map(number, (each.earliest, each.last_stable, each.latest)),
        ]
        for each in found.partitions
    ]
    if found.at is not None:
        headers.append("at time")
        rows = [[*row, number(each.at)] for row, each in zip(rows, found.partitions, strict=True)]
    return text_table(headers, rows, numbers={0, 1, *range(4, 8)})


def _sums(found: TopicReport) -> Iterator[str]:
    count = len(found.partitions)
    held = f", {number(found.held_back)} behind open transactions" if found.held_back else ""
    partitions = f"{count:,} partition{'' if count == 1 else 's'}"
    yield f"{found.name}: {partitions}, at most {number(found.records_at_most)} records{held}"
    if found.retention is not None:
        yield _retention(found.retention)
    if found.at is not None:
        moment = at(found.at.timestamp() * 1000)
        yield f"at time: the first offset from {moment} on; -: no record is that young"


def _retention(found: Retention) -> str:
    age = "no limit" if found.age_ms is None else in_words(found.age_ms)
    size = "no limit" if found.size is None else f"{found.size:,} bytes of each partition"
    limits = f"retention.ms: {age}; retention.bytes: {size}"
    return f"cleanup.policy: {found.policy}; {limits if found.deletes else 'deletes by no limit'}"


def _readers(found: TopicReport) -> str:
    headers = ("pipeline", "partition", "position", "lag", "next record of", "time left")
    rows = [
        (
            reader.name,
            str(each.partition),
            _position(each),
            number(each.lag),
            "-" if each.left.record_ms is None else at(each.left.record_ms),
            _left(each.left),
        )
        for reader in found.readers
        for each in reader.partitions
    ]
    return text_table(headers, rows, numbers=(1, 2, 3))


def _position(each: Reading) -> str:
    new = each.position is not None and not each.recorded
    return f"{number(each.position)}{' (new)' if new else ''}"


def _left(found: TimeLeft) -> str:
    if found.seconds is None:
        return _WORDS[found.outlook]
    if found.seconds == 0:
        return "none: overdue"
    left = duration(found.seconds)
    return f"at least {left}" if found.outlook is Outlook.BY_AGE else f"{left} by age"


def _notes(readers: Sequence[Reader], said: Iterable[str]) -> Iterator[str]:
    """The lag of each pipeline, and what the times rest on that was not said before."""
    for each in readers:
        yield f"{each.name}: lag {number(each.lag)}, into {each.table}"
        if each.reason is not None:
            yield f"{each.name}: the next run would not go on: {each.reason}"
    known = {*said, NOTHING_WAITS.basis, *(each.reason for each in readers)}
    bases = dict.fromkeys(it.left.basis for each in readers for it in each.partitions)
    yield from (f"time left: {basis}" for basis in bases if basis not in known)
