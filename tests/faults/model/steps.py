"""The steps of a driver around a commit: start, project, plan, and at last close.

Each takes the state and gives the next one, or None where it is not enabled. A guard that is
taken out leaves out a line of a step, no more.
"""

from __future__ import annotations

from collections.abc import Collection

from tests.faults.model import scratch, sending
from tests.faults.model.effects import LAST
from tests.faults.model.guards import Guards
from tests.faults.model.opening import (
    LOG_TRUNCATED,
    OFFSET_GAP,
    OFFSET_OVERLAP,
    STORE_REFUSED,
    TOPIC_RECREATED,
    look,
    was_cut,
)
from tests.faults.model.reading import projected
from tests.faults.model.records import quarantined
from tests.faults.model.state import (
    ACCEPTING,
    AT_REST,
    BATCH,
    DEAD,
    DISCOVERY,
    DUE,
    ERASURE,
    HALTED,
    HEARTBEAT,
    LOSS,
    NOT_TOLD,
    OPENED,
    ORPHAN,
    PLANNED,
    READY,
    SEEN,
    STAGED,
    VERIFIED,
    Driver,
    Entry,
    State,
    put,
)


def start(
    state: State,
    guards: Guards,
    d: int,
    options: Collection[str] = (),
    at: int | None = None,
) -> State | None:
    """Take the lock, read the ledger, pass every guard; or halt, before anything is written."""
    if state.drivers[d].phase not in AT_REST or _locked(state, guards, d):
        return None
    if state.last_wins and guards.trial:
        return halted(state, d, STORE_REFUSED)
    if state.scratch and guards.fresh_checkpoint:
        state = scratch.put_checkpoint(state, d, None)
    found = look(state.table, state.topic, guards, options, at)
    if found is None:
        return None
    if isinstance(found, str):
        return halted(state, d, found)
    readable = state.table.log[state.table.first :]
    known = projected(state.table.offsets)
    missing = [each for each in readable if isinstance(each, Entry) and each.sequence > known]
    pending = tuple(missing) if guards.projection_caught_up else ()
    driver = Driver(
        phase=OPENED if pending else READY,
        version=len(state.table.log) - 1,
        sequence=found.sequence,
        newest=found.newest,
        topic=state.topic.id,
        stream=found.stream,
        owes=found.owes,
        accepts=found.accepts,
        epoch=state.topic.epoch if found.epoch is None else found.epoch,
        pending=pending,
        given_up=state.drivers[d].given_up,
    )
    if found.owes == DISCOVERY and not guards.discovery:
        promised = at if state.promised is None else state.promised
        state, driver = state._replace(promised=promised), driver._replace(owes="")
    return put(state, d, scratch.resumed(state, guards, d, driver))


def _locked(state: State, guards: Guards, d: int) -> bool:
    """Whether another driver holds the lock: as long as its JVM lives, frozen or not."""
    free = AT_REST if guards.writer_holds_lock else (*AT_REST, ORPHAN)
    others = (each for n, each in enumerate(state.drivers) if n != d)
    return guards.lock and any(each.phase not in free for each in others)


def project(state: State, guards: Guards, d: int, upto: int | None = None) -> State | None:
    """Write what is pending to the offsets table, as far as its own ``txn`` does not know it.

    A start writes all of it before it goes on. A run does so beside its batches, at any moment:
    all that it had handed over up to the entry ``upto``.
    """
    driver = state.drivers[d]
    if driver.phase in (DEAD, ORPHAN) or not driver.pending:
        return None
    rows = tuple(each for each in driver.pending if upto is None or each.sequence <= upto)
    left = driver.pending[len(rows) :]
    if not rows or (driver.phase == OPENED and left):
        return None
    table = state.table
    if guards.projection_txn:
        rows = tuple(each for each in rows if each.sequence > projected(table.offsets))
    state = state._replace(table=table._replace(offsets=table.offsets + rows))
    phase = READY if driver.phase == OPENED else driver.phase
    return put(state, d, driver._replace(phase=phase, pending=left))


def hand_over(state: State, guards: Guards, d: int) -> State | None:
    """Go on, and leave the entry to be projected beside the next batches."""
    driver = state.drivers[d]
    if driver.phase != VERIFIED or sending.is_due(state, guards, d, LAST):
        return None
    if driver.owes in ACCEPTING:
        if driver.pending:
            return None
        return put(state, d, Driver())  # the command has done what it was asked for
    if not guards.quarantine_ahead and driver.newest:
        state = state._replace(table=quarantined(state, driver.newest))
    state = scratch.done(state, guards, d)
    return put(state, d, driver._replace(phase=READY, owes="", accepts=0, attempt=None, unsent=()))


def plan(
    state: State,
    guards: Guards,
    d: int,
    kind: str,
    start: int | None,
    until: int | None,
    beside: bool = False,
) -> State | None:
    """Decide on the range that Spark offers, or on the entry that is owed. Before any write.

    ``beside``: Kafka is looked at while the batch is read, see ``see``, and not before.
    """
    driver = state.drivers[d]
    if driver.phase != READY or not _offered(state, guards, d, kind, start, until):
        return None
    newest = driver.newest
    if kind == BATCH and newest is not None:
        if not beside and (code := _moved(state, guards, driver)):
            return halted(state, d, code)
        if start != until and (start, until) == (newest.start, newest.until):
            skipped = put(state, d, driver._replace(stream=until))  # it is there already
            return scratch.done(skipped, guards, d)
        if guards.contiguity and start is not None and newest.until is not None:
            if start > newest.until:
                return halted(state, d, OFFSET_GAP)
            if start < newest.until:
                return halted(state, d, OFFSET_OVERLAP)
    sequence = driver.sequence + 1
    if kind == BATCH and scratch.matters(guards):
        checkpoint = scratch.planned(state.scratch[d], start or 0, until or 0)
        state = scratch.put_checkpoint(state, d, checkpoint)
        sequence = sequence if guards.ledger_sequence else 2 + checkpoint.batch  # 1: the discovery
    accepts, base = driver.accepts, driver.version
    # To accept a DELETE Kafka is not asked.
    topic = newest.topic if kind == ERASURE and newest is not None else driver.topic
    epoch = state.topic.epoch if kind == BATCH else driver.epoch
    epoch = newest.epoch if beside and newest is not None else epoch
    entry = Entry(kind, sequence, start, until, topic, accepts=accepts, base=base, epoch=epoch)
    return put(state, d, driver._replace(phase=PLANNED, planned=entry, look=DUE if beside else ""))


def see(state: State, guards: Guards, d: int) -> State | None:
    """Look at Kafka while a batch is read: what it says then holds for its commit.

    Where a leader changed, the batch is read again, after this look.
    """
    driver = state.drivers[d]
    if driver.look != DUE or driver.phase not in (PLANNED, STAGED) or driver.planned is None:
        return None
    if code := _moved(state, guards, driver):
        return halted(state, d, code)
    entry, epoch = driver.planned, state.topic.epoch
    if entry.epoch == epoch:
        return put(state, d, driver._replace(look=SEEN))
    entry = entry._replace(epoch=epoch)
    if not guards.read_again:
        return put(state, d, driver._replace(planned=entry, look=SEEN))
    entry = entry._replace(commit=None, read=0, cuts=0, wrote=(), made=NOT_TOLD, holds=None)
    again = driver._replace(phase=PLANNED, planned=entry, waiting=None, look=SEEN)
    return put(state, d, again)


def _moved(state: State, guards: Guards, driver: Driver) -> str:
    """Why a driver may not go on from its newest entry: another topic, or a log that was cut."""
    if guards.topic_id and driver.topic != state.topic.id:
        return TOPIC_RECREATED
    return LOG_TRUNCATED if was_cut(state.topic, guards, driver.newest) is not None else ""


def _offered(
    state: State, guards: Guards, d: int, kind: str, start: int | None, until: int | None
) -> bool:
    """Whether this can come next: Spark reads on from where it stands, other entries are owed."""
    driver, topic = state.drivers[d], state.topic
    stands = driver.stream
    if kind in ACCEPTING and kind != driver.owes:
        return False
    if start is None or until is None:  # does not touch a partition that was never seen
        return start is until is stands is None
    if kind == BATCH:
        begins = start == (stands or 0)  # Spark begins a partition that appears at 0
        reach = topic.high if guards.read_committed else topic.end
        return begins and not driver.owes and until <= reach and scratch.allows(state, d, until)
    begins = stands is None or start == stands
    if driver.owes == LOSS:
        return kind == LOSS and begins and start < until <= topic.low
    return begins and start == until and driver.owes in (kind, "", DISCOVERY, HEARTBEAT)


def close(state: State, guards: Guards, d: int) -> State | None:
    """The run ends: asked to between two batches, or with an error before it writes again. After
    that it may open the pipeline anew.

    By then all that it committed is projected; or it dies, see ``crash``.
    """
    driver = state.drivers[d]
    if driver.phase not in (READY, PLANNED) or driver.pending:
        return None
    return put(sending.broken(state, d), d, Driver(given_up=driver.given_up))


def halted(state: State, d: int, code: str) -> State:
    """The state with driver ``d`` dead, and loudly."""
    pending = state.drivers[d].pending  # it still projects that
    return put(sending.broken(state, d), d, Driver(HALTED, code=code, pending=pending))
