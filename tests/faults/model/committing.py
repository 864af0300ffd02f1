"""The steps of a commit: write, begin, land, and read back. What returns in between is noise."""

from __future__ import annotations

from tests.faults.model.definition import definition
from tests.faults.model.effects import FIRST
from tests.faults.model.guards import Guards
from tests.faults.model.opening import (
    BATCH_FAILED,
    COMMIT_FAILED,
    LEDGER_BROKEN,
    SUPERSEDED,
    TABLE_UNDONE,
)
from tests.faults.model.reading import content, txn, walk
from tests.faults.model.records import good, left_waiting, quarantined, readable, taken
from tests.faults.model.sending import broken, gave_up, is_due, prepared
from tests.faults.model.state import (
    BATCH,
    COMMITTING,
    DUE,
    NOT_TOLD,
    ORPHAN,
    PLANNED,
    READY,
    RESET,
    RESUME,
    RETURNED,
    STAGED,
    VERIFIED,
    Commit,
    Driver,
    Entry,
    Log,
    State,
    put,
)
from tests.faults.model.steps import halted
from tests.faults.model.stores import put_at, under_way


def stage(state: State, guards: Guards, d: int) -> State | None:
    """Read a batch whose rows rest on those of the table, or are sent, while Kafka is asked.

    Nobody sees yet what comes of it. Rows that Spark adds are read in its commit.
    """
    driver = state.drivers[d]
    if driver.phase != PLANNED or driver.look != DUE or driver.planned is None:
        return None
    if driver.planned.read or not (state.effect.sends or state.effect.change):
        return None
    if not readable(state.topic, driver.planned):
        return halted(state, d, BATCH_FAILED)
    read = driver.planned._replace(read=state.topic.id, cuts=state.topic.epoch)
    return put(state, d, driver._replace(planned=read))


def write(state: State, guards: Guards, d: int, commit: object) -> State | None:
    """Give the entry its id, and write the bad records of the range ahead of the commit."""
    driver = state.drivers[d]
    if driver.phase != PLANNED or driver.planned is None or used(state, commit):
        return None
    if driver.look == DUE:
        return None
    entry = driver.planned._replace(commit=commit)
    if not entry.read and not readable(state.topic, entry):
        return halted(state, d, BATCH_FAILED)
    if state.effect.sends:  # the batch is read now, if it was not before, and kept
        entry = _read(state, entry)
        state = prepared(state, guards, d, entry)
        driver = state.drivers[d]
    if guards.quarantine_ahead:
        state = state._replace(table=quarantined(state, entry))
    if not guards.entry_always and entry.kind == BATCH and not good(state.topic, guards, entry):
        return put(state, d, driver._replace(phase=READY, planned=None, stream=entry.until))
    return put(state, d, driver._replace(phase=STAGED, planned=entry))


def _read(state: State, entry: Entry) -> Entry:
    """The entry with what its batch was read from: now, unless that was before."""
    return entry if entry.read else entry._replace(read=state.topic.id, cuts=state.topic.epoch)


def begin(state: State, guards: Guards, d: int) -> State | None:
    """Delta's transaction reads the snapshot, and skips a stale ``txn`` without a word."""
    driver = state.drivers[d]
    if driver.phase != STAGED or driver.planned is None:
        return None
    if driver.look == DUE and guards.looked_at:
        return None
    if driver.planned.as_files and not state.effect.sends:
        return put(state, d, driver._replace(phase=COMMITTING))
    if is_due(state, guards, d, FIRST):
        return None
    if driver.planned.as_files:
        return _begin_alone(state, guards, d, driver.planned)
    entry, effect = driver.planned, state.effect
    if not entry.read:
        if not readable(state.topic, entry):
            return halted(state, d, BATCH_FAILED)
        entry = _read(state, entry)
    log = state.table.log
    if guards.txn and watermark(log, guards) >= entry.sequence:
        return returned(state, guards, d)
    if effect.change:
        entry = entry._replace(wrote=effect.change(content(log), taken(state.topic, guards, entry)))
    snapshot = len(log) - 1
    return put(state, d, driver._replace(phase=COMMITTING, planned=entry, snapshot=snapshot))


def _begin_alone(state: State, guards: Guards, d: int, entry: Entry) -> State:
    """The driver begins the commit of an entry alone, and looks at the table once more."""
    if (ended := if_stale(state, guards, d, entry)) is not None:
        return ended
    driver, log = state.drivers[d], state.table.log
    made, asks = definition(log)
    by_spark = asks and guards.left_to_spark
    entry = entry._replace(made=NOT_TOLD if by_spark else made)
    begun = driver._replace(phase=COMMITTING, planned=entry, snapshot=len(log) - 1)
    return put(state, d, begun)


def if_stale(state: State, guards: Guards, d: int, entry: Entry) -> State | None:
    """The driver looks at the log before it commits by itself: where that ends if the plan of the
    entry is stale; None where it is not.
    """
    driver, log = state.drivers[d], state.table.log
    stale = guards.exact_version and len(log) - 1 != entry.base
    if stale or (guards.txn and watermark(log, guards) >= entry.sequence):
        return returned(put(state, d, driver._replace(planned=entry)), guards, d, not stale)
    return None


def land(state: State, guards: Guards, d: int, answered: bool = True) -> State | None:
    """The commit becomes the next version, or is refused; the answer may be lost."""
    driver = state.drivers[d]
    if driver.phase not in (COMMITTING, ORPHAN) or driver.planned is None:
        return None
    log, after = state.table.log, driver.snapshot + 1
    rivals = watermark(log[after:], guards) > 0
    refused = rivals and guards.txn  # ConcurrentTransactionException
    if driver.planned.as_files:
        version = after if guards.exact_version else len(log)
        log = put_at(state, version, driver.planned)
        # What is there may be an earlier copy of the same put.
        answered = answered and is_of(log[version], driver.planned.commit)
    elif refused and not guards.put_if_absent and isinstance(log[after], Entry):
        log = (*log[:after], driver.planned, *log[after + 1 :])  # renamed over the rival's file
    elif refused or (guards.rows_unmoved and _merges(state, driver) and _moved(log, after)):
        answered = False
    else:
        log = (*log, driver.planned)  # conflicts with nobody: goes on top
    state = state._replace(table=state.table._replace(log=log))
    if driver.phase == ORPHAN:
        return put(state, d, Driver())
    return returned(state if answered else left_waiting(state, guards, d), guards, d, answered)


def time_out(state: State, guards: Guards, d: int) -> State | None:
    """The client of an object store gives up a put, which is still under way.

    That ends the batch: what is sent is sent anew, or not at all if the put arrives after all.
    """
    begun = under_way(state, guards, d)
    if begun is None:
        return None
    ended = begun.drivers[d]._replace(attempt=None, unsent=())
    return returned(put(broken(begun, d), d, ended), guards, d, answered=False)


def conflict(state: State, guards: Guards, d: int) -> State | None:
    """The store answers a put with 409, which decides nothing: the client sends it once more.

    What is in the way may be the same put, if its client has lost a connection before.
    """
    begun = under_way(state, guards, d)
    if begun is None or guards.kept_unless_refused:
        return begun
    return returned(begun, guards, d, answered=False)


def watermark(log: Log, guards: Guards) -> int:
    """The newest ``txn`` in some commits; 0 where there is none."""
    carry = (e for e in log if isinstance(e, Entry) and (guards.files_txn or not e.as_files))
    return txn(log) if guards.files_txn else txn(tuple(carry))


def _merges(state: State, driver: Driver) -> bool:
    """Whether what is to be committed rests on the rows that its transaction has read."""
    planned = driver.planned
    return state.effect.change is not None and planned is not None and planned.kind == BATCH


def _moved(log: Log, after: int) -> bool:
    """Whether one of the commits from version ``after`` on has changed a row."""
    rows = [content(log[:version]) for version in range(after, len(log) + 1)]
    return any(each != rows[0] for each in rows)


def fail(state: State, guards: Guards, d: int) -> State | None:
    """The write raises, and nothing of it is in the log."""
    phase = state.drivers[d].phase
    if phase not in (STAGED, COMMITTING):
        return None
    state = left_waiting(state, guards, d) if phase == COMMITTING else state
    return returned(gave_up(state, d), guards, d, answered=False)


def returned(state: State, guards: Guards, d: int, answered: bool = True) -> State:
    """The write returned or raised: the same to us. Without a read-back it is believed."""
    driver = state.drivers[d]
    if guards.read_back:
        return put(state, d, driver._replace(phase=RETURNED, snapshot=0))
    if not answered or driver.planned is None:
        return halted(state, d, COMMIT_FAILED)
    pending = (*driver.pending, driver.planned)
    believed = driver._replace(newest=driver.planned, pending=pending)
    return put(state, d, _verified(believed, driver.planned))


def read_back(state: State, guards: Guards, d: int) -> State | None:
    """Read the log since the version planned from, and judge what became of the write."""
    driver = state.drivers[d]
    if driver.phase != RETURNED or driver.planned is None:
        return None
    log, first, planned = state.table.log, state.table.first, driver.planned
    version = len(log) - 1 if driver.version + 1 >= first else driver.version
    since = [each for each in log[driver.version + 1 : version + 1] if isinstance(each, Entry)]
    ours = any(each.commit == planned.commit for each in since)
    if not ours and any(each.sequence >= planned.sequence for each in since):
        if guards.own_tries and since[-1].commit in driver.given_up:
            return put(broken(state, d), d, Driver(given_up=driver.given_up))
        return halted(state, d, SUPERSEDED)
    ledger = walk(log, first, True, guards.undo_aware)
    if ledger.broken or ledger.written_over_at:
        return halted(state, d, LEDGER_BROKEN)
    accepts = not ours and planned.kind in (RESUME, RESET)
    if ledger.undone_at and not (accepts and ledger.undone_at == planned.accepts):
        return halted(state, d, TABLE_UNDONE)
    if accepts and guards.accepts_as_planned and ledger.undone_at != planned.accepts:
        return put(state, d, Driver())  # the command is refused: that is undone no more
    if not ours and guards.txn and txn(log) >= planned.sequence:
        return halted(state, d, COMMIT_FAILED)  # somebody wrote it, and the log shows nobody
    if not ours:  # it may be written again: the same range, the same sequence
        again = planned._replace(
            commit=None, read=0, cuts=0, base=version, wrote=(), made=NOT_TOLD, holds=None
        )
        look = DUE if driver.look else ""
        again_planned = driver._replace(phase=PLANNED, planned=again, version=version, look=look)
        return put(state, d, again_planned)
    pending = (*driver.pending, *since)
    read = driver._replace(version=version, newest=ledger.newest, pending=pending)
    return put(state, d, _verified(read, planned))


def _verified(driver: Driver, entry: Entry) -> Driver:
    """A driver that knows its entry to stand. The newest may be a rival's that came after."""
    return driver._replace(
        phase=VERIFIED,
        sequence=driver.newest.sequence if driver.newest else 0,
        stream=entry.until,
        planned=None,
        look="",
        attempt=driver.attempt if driver.unsent else None,
    )


def used(state: State, commit: object) -> bool:
    known = (*state.table.log, *(each.entry for each in state.late))
    return any(is_of(each, commit) for each in known)


def is_of(there: Commit, commit: object) -> bool:
    return isinstance(there, Entry) and there.commit == commit
