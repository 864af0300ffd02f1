"""The invariants: what must hold in every state that can be reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

from tests.faults.model.effect_judge import wrong_rows, wrongly_sent
from tests.faults.model.effects import ROWS, Effect, Record
from tests.faults.model.guards import Guards
from tests.faults.model.opening import (
    LOG_TRUNCATED,
    OFFSETS_TABLE_AHEAD,
    STORE_REFUSED,
    TOPIC_RECREATED,
    Opening,
    look,
)
from tests.faults.model.reading import (
    Truth,
    erasures,
    is_mixed,
    is_of_others,
    projected,
    truth,
    walk,
)
from tests.faults.model.records import good
from tests.faults.model.state import (
    BATCH,
    CHANGE,
    LOSS,
    RESET,
    VERIFIED,
    Entry,
    State,
    Table,
    Topic,
)

DUPLICATE, PHANTOM, UNEXPLAINED = "DUPLICATE", "PHANTOM", "UNEXPLAINED BREAK"
LOST, MIXED, PROJECTION = "LOSS", "MIXED TOPICS", "WRONG OFFSETS TABLE"
UNWRITTEN = "SILENT LOSS"
NAMED = "FALSE NAME"
UNSEEN = "UNSEEN TOPIC"


class Judge:
    """Judges states of a protocol that runs under ``guards``; remembers what it judged."""

    def __init__(self, guards: Guards, effect: Effect = ROWS) -> None:
        self._guards, self._effect = guards, effect
        self._verdicts: dict[tuple[Table, Topic, int | None], tuple[str, str]] = {}

    def violation(self, state: State) -> str:
        """The invariant that the state violates, in a few words; empty where all hold."""
        return self._verdict(state)[0] or _unwritten(state) or wrongly_sent(state, self._guards)

    def end(self, state: State) -> str:
        """Why nothing more has to come: ``complete``, or the code of the halt of every start.

        Empty where a driver still has something to do.
        """
        refused = state.last_wins and self._guards.trial
        return STORE_REFUSED if refused else self._verdict(state)[1]

    def _verdict(self, state: State) -> tuple[str, str]:
        key = (state.table, state.topic, state.promised)
        if key not in self._verdicts:
            found = look(state.table, state.topic, self._guards, at=state.promised)
            torn = isinstance(found, str) and _undone(state.table)
            rows = wrong_rows(state.table, state.topic, self._guards, self._effect)
            violations = chain(() if torn else rows, _violations(*key, self._guards, found))
            self._verdicts[key] = next(violations, ""), _end(state.table, state.topic, found)
        return self._verdicts[key]


def _unwritten(state: State) -> str:
    """A driver goes on from an entry that it holds for written: then the log has its range."""
    for driver in state.drivers:
        if driver.phase == VERIFIED and driver.newest is not None:
            records = _range(driver.newest)
            if not any(isinstance(e, Entry) and _range(e) == records for e in state.table.log):
                return f"{UNWRITTEN}: a driver goes on from an entry that no log holds"
    return ""


def _range(entry: Entry) -> tuple[int, int | None, int | None]:
    return entry.sequence, entry.start, entry.until


def _violations(
    table: Table, topic: Topic, promised: int | None, guards: Guards, found: Opening | str | None
) -> Iterator[str]:
    actual = truth(table.log)
    counted = _counted(table, topic, guards)
    twice = [record for record, times in counted.items() if times > 1]
    if twice and not (isinstance(found, str) and _undone(table)):
        yield f"{DUPLICATE}: offset {twice[0][-1]} counts {counted[twice[0]]} times"
    ghosts = [offset for read, _, offset in counted if read == topic.id and offset in topic.aborted]
    if ghosts:
        yield f"{PHANTOM}: offset {ghosts[0]} was aborted and counts"
    late = [each for each in actual.line if is_of_others(each, topic)]
    if any(two.sequence == one.sequence + 1 for one, two in pairwise(late)):
        yield f"{UNSEEN}: a batch was committed behind one of another topic, and nobody looked"
    if actual.unexplained:
        yield f"{UNEXPLAINED}: entries do not follow on each other, and nobody undid anything"
    if not _projects(table) and found != OFFSETS_TABLE_AHEAD:
        yield f"{PROJECTION}: it does not say what the log says"
    if not isinstance(found, Opening):
        return  # whatever else is wrong, the next start says so and writes nothing
    false = [version for entry, version in erasures(table.log) if _is_false(table, entry, version)]
    if false:
        yield f"{NAMED}: the DELETE of version {false[0]} is accepted, and its rows are there"
    batches = ((one, e) for one, _, line in _eras(actual) for e in line if e.kind == BATCH)
    strange = [each for one, each in batches if _strange(each, one, topic)]
    if strange:
        yield f"{MIXED}: entry {strange[0].sequence} holds records of another topic"
    base = actual.base if promised is None else promised
    missing = _missing(table, topic, actual._replace(base=base), found.stream, counted)
    if missing:
        yield f"{LOST}: offset {missing[0]} is before the position and nowhere"


def _counted(table: Table, topic: Topic, guards: Guards) -> Counter[Record]:
    """How often each record counts: rows of the table, and those rows of quarantine that do."""
    counted: Counter[Record] = Counter()
    for entry in truth(table.log).line:
        records = (topic.record(entry.read, entry.cuts, n) for n in good(topic, guards, entry))
        counted.update(records)
    counted.subtract(_erased(table, topic, guards))
    ids = _ids_that_count(table, guards)
    counted.update(
        topic.record(each.read, each.cuts, each.offset)
        for each in table.quarantine
        if not guards.quarantine_tagged or each.commit in ids
    )
    return counted


def _ids_that_count(table: Table, guards: Guards) -> set[object]:
    """The commits that a reader of the quarantine holds for standing.

    Those that stand in the log as it can be read; before it, those in the offsets table
    over which no later entry went back.
    """
    readable = [each for each in table.log[table.first :] if isinstance(each, Entry)]
    in_log = {each.commit for each in readable}
    trimmed = [each for each in table.offsets if each.commit not in in_log] if table.first else []
    if not guards.quarantine_standing:
        return {each.commit for each in (*readable, *trimmed)}
    line = truth(table.log).line
    standing = {each.commit for each in line if each.commit in in_log}
    in_offsets_table = [] if _undone(table) else trimmed
    return standing | {
        each.commit for each in in_offsets_table if not _went_back(each, table.offsets)
    }


def _went_back(row: Entry, rows: tuple[Entry, ...]) -> bool:
    later = (each for each in rows if each.sequence > row.sequence)
    return row.until is not None and any(
        each.start is not None and each.start < row.until for each in later
    )


def _undone(table: Table) -> bool:
    """Whether others undid commits, and nobody has put that right or accepted it."""
    ledger = walk(table.log, table.first, True, True)
    return bool(ledger.undone_at or ledger.written_over_at)


def _erased(table: Table, topic: Topic, guards: Guards) -> list[Record]:
    """The records whose rows others have deleted: those that were there at that time."""
    actual, gone = truth(table.log), list[Record]()
    for before, offset, _ in actual.deletes:
        for entry in actual.line[:before]:
            here = topic.record(entry.read, entry.cuts, offset)
            if offset in good(topic, guards, entry) and here not in gone:
                gone.append(here)
    return gone


def _is_false(table: Table, entry: Entry, version: int) -> bool:
    """Whether the DELETE was rolled back already when its acceptance was decided on.

    A RESTORE that comes at the same moment is found by ``verify``, which knows what stands.
    """
    stood = truth(table.log[: entry.base + 1]).deletes
    return all(each[2] != version for each in stood)


def _eras(actual: Truth) -> list[tuple[int, int | None, list[Entry]]]:
    """The entries by the topic that they read: its id, where reading of it began, and they."""
    eras: list[tuple[int, int | None, list[Entry]]] = []
    for each in actual.line:
        renews = each.kind == CHANGE and each.topic != eras[-1][0] if eras else True
        if renews or each.kind == RESET:
            # Of another topic nothing may be passed over.
            eras.append((each.topic, 0 if each.kind == CHANGE else actual.base, []))
        eras[-1][2].append(each)
    return eras


def _strange(entry: Entry, era: int, topic: Topic) -> bool:
    is_other = entry.topic != era or is_of_others(entry, topic)
    return entry.start != entry.until and is_other


def _missing(
    table: Table, topic: Topic, actual: Truth, position: int | None, counted: Counter[Record]
) -> list[int]:
    """The claimed offsets that are neither there, nor recorded as lost, nor aborted."""
    if position is None:
        return []
    eras, missing = _eras(actual) or [(topic.id, actual.base, [])], list[int]()
    for era, base, line in eras:
        reached = [each.until for each in line if each.until is not None]
        until = position if (era, base, line) == eras[-1] else max(reached, default=0)
        records = (each for each in counted if each[0] == era)
        if era == topic.id:  # of what was cut nothing counts for what is there now
            records = (each for each in records if each == topic.record(era, topic.epoch, each[-1]))
        there = {offset for *_, offset in records} | set(topic.aborted)
        for each in line:
            if each.kind == LOSS and each.start is not None and each.until is not None:
                there |= set(range(each.start, each.until))
        if base is not None:
            missing += [offset for offset in range(base, until) if offset not in there]
    return missing


def _projects(table: Table) -> bool:
    """Whether the offsets table says what the log says, in order, and nothing twice.

    Of a table that was made anew it may still hold the entries of the one before.
    """
    entries = [each for each in table.log if isinstance(each, Entry)]
    rows, known = table.offsets, projected(table.offsets)
    sequences = [each.sequence for each in rows]
    if sequences != sorted(set(sequences)) or (entries and known > entries[-1].sequence):
        return False
    before = entries[0].sequence if entries else known + 1
    said = [each for each in rows if each.sequence >= before]
    return said == [each for each in entries if each.sequence <= known]


def _end(table: Table, topic: Topic, found: Opening | str | None) -> str:
    if found in (TOPIC_RECREATED, LOG_TRUNCATED) and is_mixed(table.log, topic):
        return MIXED
    if isinstance(found, str):
        return found
    entries = [each for each in table.log if isinstance(each, Entry)]
    if found is None or found.owes or not entries:
        return ""
    settled = projected(table.offsets) == entries[-1].sequence
    return "complete" if settled and found.stream == topic.high == topic.end else ""
