"""What must hold of the rows of a table, and of a sink, by the effect that batches have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from tests.faults.model.definition import unfit
from tests.faults.model.effects import FIRST, Effect, Record
from tests.faults.model.guards import Guards
from tests.faults.model.reading import content, truth
from tests.faults.model.records import taken
from tests.faults.model.state import Entry, State, Table, Topic

WRONG_ROWS, UNSENT, REPEATED = "WRONG ROWS", "NOT SENT", "SENT AGAIN"


def wrong_rows(table: Table, topic: Topic, guards: Guards, effect: Effect) -> Iterator[str]:
    """The rows must be those of all records in effect, told in the order of their commits.

    Those that were written as files must be as the table asks.
    """
    yield from unfit(table.log)
    if effect.fold is None:
        return
    records = (taken(topic, guards, each) for each in truth(table.log).line)
    must = effect.fold(dict.fromkeys(chain.from_iterable(records)))
    holds = content(table.log)
    if Counter(holds) != Counter(must.items()):
        yield f"{WRONG_ROWS}: {_shown(holds)}, where the records give {_shown(must.items())}"


def _shown(rows: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"key {key} has {value}" for key, value in sorted(rows)) or "no rows"


def wrongly_sent(state: State, guards: Guards) -> str:
    """What a sink should have and lacks, or has and should not; empty where all is well.

    At least once: each record of the entries in effect. At most once: each as well, but for those
    of a batch that is under way, or whose driver was killed or halted; and none twice. At least
    once, too, only such a batch repeats records. Entries that others undid are to be read again.
    """
    first = state.effect.sends == FIRST
    if not state.effect.sends:
        return ""
    line = truth(state.table.log).line
    standing = {each.commit for each in line}
    undone = {each.commit for each in state.table.log if isinstance(each, Entry)} - standing
    open_ = {each.attempt for each in state.drivers} | set(state.sink.broken)
    sent = defaultdict[Record, list[object]](list)
    for each in state.sink.received:
        sent[each.record].append(each.commit)
    excused = undone | open_ | standing if first else undone
    for record, commits in sent.items():
        strange = [each for each in commits if each not in excused]
        once = len(set(commits)) == len(commits)
        if not once or len(strange) > (0 if first and len(commits) > 1 else 1):
            return f"{REPEATED}: offset {record[-1]} is in the sink {len(commits)} times"
    for entry in line:
        if entry.read and (first or entry.commit not in open_):
            for record in taken(state.topic, guards, entry):
                if record not in sent:
                    return f"{UNSENT}: offset {record[-1]} is before the position, and not sent"
    return ""
