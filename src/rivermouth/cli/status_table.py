"""The status of all pipelines as a table for people."""

from __future__ import annotations

import time
from collections.abc import Callable

from rivermouth.cli.proving import ago, proof_note, proved
from rivermouth.cli.render import duration, number, wrapped
from rivermouth.cli.text_table import text_table
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.warehouse.folder.retrying import Retrying

_HEADERS = ("pipeline", "state", "entry", "lag\n(offsets)", "lag\n(time)", "proved up to", "table")
_NUMBERS = (2, 3, 4)


def render(found: Status, now: Callable[[], float] = time.time) -> str:
    """A table, at most 80 columns wide, and after it what is to be known besides."""
    table = text_table(_HEADERS, [_row(each, now()) for each in found.pipelines], numbers=_NUMBERS)
    reasons = [f"{each.name}: {each.reason}" for each in found.pipelines if each.reason]
    accepted = [
        f"{each.name}: accepted: {kind}, in entry {entry}"
        for each in found.pipelines
        for kind, entry in each.accepted
    ]
    retries = [
        wrapped(f"{each.name}: {_retried(each.retrying, now())}", "  ", "")
        for each in found.pipelines
        if each.retrying is not None
    ]
    proofs = [
        wrapped(f"{each.name}: {note}", "  ", "")
        for each in found.pipelines
        if each.proof is not None and (note := proof_note(each.proof, now()))
    ]
    mirrors = [
        wrapped(f"{each.name}: {each.mirror.line()}", "  ", "")
        for each in found.pipelines
        if each.mirror is not None
    ]
    ways = [
        wrapped(f"{each.name}: {each.way}", "  ", "")
        for each in found.pipelines
        if each.way is not None and each.way.reason
    ]
    return "\n".join([table, *reasons, *retries, *accepted, *proofs, *mirrors, *ways])


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


def _retried(note: Retrying, now_s: float) -> str:
    since, last = (ago(now_s - ms / 1000) for ms in (note.since_ms, note.at_ms))
    tries = "once" if note.tries == 1 else f"{note.tries:,} times"
    return f"a run tried it again, {tries}, first {since}, last {last}: {note.reason}"
