"""What an entry that accepts changes may say: what was there before, and what follows. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.checker.entry import Changes, Entry, Move
from tests.faults.checker.evidence import Place, shown
from tests.faults.checker.verdict import Fault, Finding

KINDS = {"identity", "partitions", "truncation", "topic", "cluster"}


def moved(where: str, entry: Entry, stood: Entry) -> Iterator[Finding | tuple[Place, int | None]]:
    """Where partitions go by the changes of an entry, and what is wrong with that."""
    changes = entry.changes
    for move in changes.moved if changes is not None else ():
        assert changes is not None
        known = stood.position.get(move.place)
        if move.was != known:
            what = f"says that {shown(move.place)} stood at {move.was}, it stood at {known}"
            yield Finding(Fault.LEDGER, where, what)
        fault = _fault(changes, move)
        if fault is not None:
            what = f"{shown(move.place)} goes from {move.was} to {move.now}; {changes.kinds}"
            yield Finding(fault, where, what)
        yield move.place, move.now


def _fault(changes: Changes, move: Move) -> Fault | None:
    if changes.renews(move.place[0]):
        return None
    if move.now is None:
        return None if "partitions" in changes.kinds and move.was is not None else Fault.LEDGER
    if move.was is None or move.now >= move.was:
        return Fault.LOST_RANGE
    return None if "truncation" in changes.kinds else Fault.REWIND


def judge_changes(where: str, entry: Entry, stood: Entry) -> Iterator[Finding]:
    """Kinds, cluster and topics of the changes must be those of the two entries."""
    changes = entry.changes
    if changes is None:
        return
    due = {
        "identity": bool(changes.settings),
        "cluster": bool(changes.cluster),
        "topic": bool(changes.topics) and not changes.cluster,
        "partitions": any(each.now is None for each in changes.moved),
    }
    said = {*changes.kinds}
    wrong = {kind for kind, there in due.items() if there != (kind in said)}
    if not said or not said <= KINDS or wrong:
        yield Finding(Fault.LEDGER, where, f"accepts {changes.kinds}, and tells of {due}")
    if changes.cluster and (changes.cluster != stood.cluster or changes.cluster == entry.cluster):
        yield Finding(Fault.LEDGER, where, f"the cluster was {stood.cluster}: {changes.cluster}")
    for topic, was in changes.topics.items():
        if was != stood.topics.get(topic) or was == entry.topics.get(topic):
            yield Finding(Fault.LEDGER, where, f"{topic} was {stood.topics.get(topic)}, not {was}")
    named = {each.place for each in changes.moved}
    for place in stood.position:
        if place[0] in changes.topics and not changes.cluster and place not in named:
            what = f"{shown(place)} is of another topic, and nobody says where it continues"
            yield Finding(Fault.LEDGER, where, what)


def judge_accepted(where: str, entry: Entry, stood: Entry | None) -> Iterator[Finding]:
    """All changes that were accepted so far are remembered, until the table is emptied."""
    known = stood.accepted if stood is not None else ()
    if entry.accepted is None or known is None:
        return
    now = entry.changes.kinds if entry.changes is not None else ()
    due = (*known, *((kind, entry.sequence) for kind in now))
    if entry.accepts == "reset":
        due = ()
    if entry.accepted != due:
        yield Finding(Fault.LEDGER, where, f"remembers {entry.accepted}, {due} was accepted")
