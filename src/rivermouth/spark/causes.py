"""The chain of causes behind an error that comes through Spark: from its text, to the root.

An error of the JVM arrives in one of three forms: by py4j as it is, by PySpark's own exceptions,
or by Spark Connect. All of them can tell the printed stack trace, and in that every cause has a
line of its own. So the text is read, and nothing is asked of a JVM that may be gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FRAME = re.compile(r"^(\s+at\s|\s*\.\.\. \d+ more|\s+Suppressed:|\s+Caused by:)")
_NOISE = re.compile(
    r"^(An error occurred while calling .*|JVM stacktrace:|Driver stacktrace:|=== .* ===|)$"
)
_THROWN = re.compile(
    r"^(?:Caused by: |: )?(?P<kind>(?:\w+\.)+[\w$]*[A-Z][\w$]*)(?:: (?P<said>.*))?$"
)
# What the task said stands at the end of the line in which the job says that it lost the task.
_TASK = re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\)(?: \(.*?\))?: (?P<said>.+)$")
_STREAM = re.compile(r"terminated with exception: (?P<said>.+)$")
# What Python's interpreter says last, after the frames of a trace.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_]+(\.[A-Z0-9_]+)?\]")
_STATE = re.compile(r"SQLSTATE: (\w{5})")


@dataclass(frozen=True)
class Cause:
    """One link of a chain: the class that was thrown (empty: not told), and what it said."""

    kind: str
    said: str

    @property
    def name(self) -> str:
        """The class without its package."""
        return re.split(r"[.$]", self.kind)[-1]

    def __str__(self) -> str:
        """What it said, under the name of its class where no error condition names it."""
        if _CONDITION.search(self.said) or not self.kind:
            return self.said
        return f"{self.name}: {self.said}" if self.said else self.name


def said(fault: BaseException) -> str:
    """What an error and all its causes say; Spark puts the reason in any of them."""
    texts: list[str] = []
    cause: BaseException | None = fault
    while cause is not None and len(texts) < 20:
        texts.append(_text(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(texts)


def _text(fault: BaseException) -> str:
    """What one error says, with the trace of the server that Spark Connect may keep to itself."""
    text, trace = str(fault), getattr(fault, "_stacktrace", None)
    return f"{text}\n{trace}" if isinstance(trace, str) and trace not in text else text


def causes(text: str) -> list[Cause]:
    """The causes that a text with stack traces tells, from the outermost to the root."""
    lines = [line.rstrip() for line in text.splitlines()]
    told = (line for line in lines if not _FRAME.match(line) and not _NOISE.match(line.strip()))
    found = list[Cause]()
    for number, line in enumerate(told):
        thrown = _THROWN.match(line)
        if thrown is not None:
            found += _unpacked(Cause(thrown["kind"], (thrown["said"] or "").strip()))
        elif number == 0 or _CONDITION.search(line):  # else the rest of a text of several lines
            found += _unpacked(Cause("", line.removeprefix(": ").strip()))
    return found


def _unpacked(cause: Cause) -> Iterator[Cause]:
    """The cause, and those that its own text tells."""
    yield cause
    inner = _TASK.match(cause.said) or _STREAM.search(cause.said)
    if inner is not None:
        thrown = _THROWN.match(inner["said"])
        if thrown is not None:
            yield from _unpacked(Cause(thrown["kind"], (thrown["said"] or "").strip()))
        else:
            yield from _unpacked(Cause("", inner["said"]))


def root(chain: Sequence[Cause]) -> str:
    """The innermost cause that says something, in one line; empty where there is none.

    What Java's own language says, such as "long overflow", comes behind what names a condition.
    """
    telling = [each for each in chain if each.said]
    if not telling:
        return str(chain[-1]) if chain else ""
    last = telling[-1]
    named = [e for e in telling if _CONDITION.search(e.said) and not _STREAM.search(e.said)]
    if named and named[-1] is not last and last.kind.startswith("java.lang."):
        return f"{named[-1]}, caused by {last}"
    return str(last) if chain[-1].said else f"{last}, caused by {chain[-1].name}"


def raised(text: str) -> str:
    """What Python raised last in a text with traces of it, in one line; empty where it has none."""
    found = _RAISED.findall(text)
    return str(found[-1]) if found else ""


def raised_in_worker(text: str) -> str:
    """The same, where a Python worker of Spark raised it."""
    return raised(text) if "thrown from the Python worker" in text else ""


def sql_states(text: str) -> set[str]:
    """The SQLSTATEs that a text with stack traces tells."""
    return {*_STATE.findall(text)}
