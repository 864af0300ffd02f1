"""Saying since when to verify, and what is proved, as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.verify import PipelineProof, Since
    from rivermouth.verify.proved import Standing

_DURATION = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = "write last, a time with its zone, as 2026-11-21T06:00:00Z, or a duration, as 1d or 12h"
_WIDTH = 79


class Shares:
    """One line on a terminal that changes: what is being verified. It disappears at the end."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._shown: dict[str, str] = {}

    def __call__(self, pipeline: str, done: int, total: int) -> None:
        """``done`` of ``total`` offsets of a pipeline are verified."""
        if done < total:
            self._shown[pipeline] = f"{pipeline} {100 * done // total} %"
        else:
            self._shown.pop(pipeline, None)
        line = f"verifying {', '.join(self._shown.values())}"[:_WIDTH] if self._shown else ""
        self._terminal.write(f"\r\x1b[K{line}")
        self._terminal.flush()


def read_since(text: str, now_s: float) -> Since | None:
    """What ``--since`` asks for; None where it is empty. Raises ConfigError."""
    from rivermouth.verify import Since

    if text in ("", "last"):
        return Since() if text else None
    duration = _DURATION.fullmatch(text)
    if duration:
        return Since((now_s - int(duration[1]) * _SECONDS[duration[2]]) * 1000)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as fault:
        raise ConfigError((f"--since {text}: {_FORM}",)) from fault
    if moment.tzinfo is None:
        raise ConfigError((f"--since {text}: the zone is missing; {_FORM}",))
    if moment.timestamp() > now_s:
        raise ConfigError((f"--since {text}: that time is still to come",))
    return Since(moment.timestamp() * 1000)


def left_out(proof: PipelineProof) -> Iterator[str]:
    """What a verification did not read again, why it read all, and why it is not on record."""
    if proof.read_all is not None:
        yield f"everything was read: {proof.read_all}"
    before = proof.reach.before if proof.reach is not None else None
    if before is not None:
        known = "not checked" if before.proved_ms is None else f"proved at {at(before.proved_ms)}"
        yield f"entries up to {before.entry:,}: {known}"
        yield "their rows were not read again: what was deleted or changed there is not seen"
        if before.keys:
            yield f"of the keys that were read, {before.keys:,} have a row from before"
    if proof.recording is not None and proof.recording.problem is not None:
        yield f"not recorded: {proof.recording.problem}"


def proved(found: Standing | None, now_s: float) -> str:
    """Up to which entry a pipeline is proved, and when that was: a cell of ``status``."""
    if found is None:
        return "never"
    if found.void is not None:
        return "void"
    return f"{found.proved.last.sequence:,}, {ago(now_s - found.proved.at_ms / 1000)}"


def proof_note(found: Standing, now_s: float) -> str:
    """What is to be known of a proof besides; empty where it stands and all was read at once."""
    known = found.proved
    if found.void is not None:
        last = f"entry {known.last.sequence:,}"
        return f"the proof up to {last}, of {at(known.at_ms)}, is void: {found.void}"
    notes = []
    if known.full_entry != known.last.sequence:
        when = ago(now_s - known.full_ms / 1000)
        notes.append(f"read as a whole up to entry {known.full_entry:,}, {when}")
    holes = [f"{what.replace('_', ' ')} ({number:,})" for what, number in known.left.items()]
    if holes:
        notes.append(f"not checked: {', '.join(holes)}")
    if found.unread:
        notes.append(f"{found.unread:,} commits since, too many to tell here whether it stands")
    return f"proof: {'; '.join(notes)}" if notes else ""


def ago(seconds: float) -> str:
    """How long ago something was."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds / 60)} min ago"
    days = int(seconds / 86_400)
    if days == 0:
        return f"{int(seconds / 3600)} h ago"
    return "yesterday" if days == 1 else f"{days:,} days ago"


def at(ms: float) -> str:
    """A time in ms since 1970, in UTC, to the minute; the number where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{ms:.0f} ms"
