"""How an entry must follow on the one that stands before it. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator

from tests.faults.checker.acceptance import judge_accepted, judge_changes, moved
from tests.faults.checker.entry import Changes, Entry, Span
from tests.faults.checker.evidence import shown
from tests.faults.checker.verdict import Fault, Finding


def judge(
    entry: Entry, txn: int, newest: Entry | None, stood: Entry | None, commits: Container[str]
) -> Iterator[Finding]:
    """What is wrong with an entry.

    ``newest`` is the pipeline's last entry, ``stood`` the last that still stands (another one
    where commits were undone), ``commits`` the ids used before, ``txn`` the version in the
    commit's own ``txn``.
    """
    where = f"{entry.pipeline} {entry}"
    due = newest.sequence + 1 if newest else 1
    table_made_anew = newest is None and entry.accepts == "reset"
    if entry.sequence != due and not table_made_anew:
        yield Finding(Fault.SEQUENCE, where, f"{due} was due")
    if txn != entry.sequence:
        yield Finding(Fault.LEDGER, where, f"its txn has version {txn}")
    if entry.commit in commits:
        yield Finding(Fault.LEDGER, where, f"commit id {entry.commit} a second time")
    if newest is not stood and entry.accepts is None:
        stands = str(stood) if stood else "none"
        yield Finding(Fault.UNDONE, where, f"{newest} was undone, {stands} stands")
    if entry.accepts == "reset":
        stood = None
    if stood is not None:
        yield from _identity(where, entry, stood)
        yield from judge_changes(where, entry, stood)
    yield from judge_accepted(where, entry, stood)
    yield from _position(where, entry, stood)
    yield from _claims(where, entry)


def _identity(where: str, entry: Entry, stood: Entry) -> Iterator[Finding]:
    changes = entry.changes or Changes(())
    if entry.cluster != stood.cluster and not changes.cluster:
        yield Finding(Fault.LEDGER, where, f"cluster {entry.cluster}, before {stood.cluster}")
    for topic, known in stood.topics.items():
        if entry.topics.get(topic) != known and not changes.renews(topic):
            yield Finding(Fault.LEDGER, where, f"{topic} is another topic than before")


def _position(where: str, entry: Entry, stood: Entry | None) -> Iterator[Finding]:
    """Ranges start where the position stands and lead to where it stands afterwards."""
    position = dict(stood.position) if stood else {}
    for each in moved(where, entry, stood) if stood is not None else ():
        if isinstance(each, Finding):
            yield each
        else:
            place, now = each
            position.pop(place, None)
            position |= {} if now is None else {place: now}
    for span in entry.spans:
        if entry.accepts is None:
            fault = _relation(span, position.get(span.place, span.start))
            if fault is not None:
                stands = position.get(span.place, span.start)
                yield Finding(fault, where, f"{span}, where the position stands at {stands}")
        elif span.place in position and span.until != position[span.place]:
            ahead = span.until > position[span.place]
            fault = Fault.LOST_RANGE if ahead else Fault.REWIND
            yield Finding(fault, where, f"resumes at {span}, not {position[span.place]}")
        position[span.place] = span.until
    if position != entry.position:
        differing = sorted({*position.items()} ^ {*entry.position.items()})
        names = ", ".join(dict.fromkeys(shown(place) for place, _ in differing))
        yield Finding(Fault.LEDGER, where, f"its position is not where its ranges lead: {names}")


def _relation(span: Span, stands: int) -> Fault | None:
    if span.until < span.start or (span.start < stands and span.until <= stands):
        return Fault.REWIND
    if span.start < stands:
        return Fault.DUP_RANGE
    return Fault.LOST_RANGE if span.start > stands else None


def _claims(where: str, entry: Entry) -> Iterator[Finding]:
    """What an entry claims to be must fit what it holds."""
    full = [span for span in entry.spans if span.until > span.start]
    accepting = entry.accepts is not None or entry.changes is not None or entry.deletes
    if full and accepting:
        yield Finding(Fault.LEDGER, where, f"covers offsets, and may not: {full[0]}")
    for lost in entry.lost:
        if not any(_within(lost, span) for span in entry.spans):
            yield Finding(Fault.LEDGER, where, f"lost {lost} is in none of its ranges")


def _within(inner: Span, outer: Span) -> bool:
    return inner.place == outer.place and outer.start <= inner.start and inner.until <= outer.until
