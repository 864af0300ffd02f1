"""The steps of everybody else: death, Kafka, other writers, log clean-up, the operator's hand.

Each takes the state and gives the next one, or None where it is not enabled.
"""

from __future__ import annotations

from tests.faults.model.guards import Guards
from tests.faults.model.reading import projected, walk
from tests.faults.model.sending import broken
from tests.faults.model.state import (
    ALTER,
    ASK,
    AT_REST,
    COMMITTING,
    CREATE,
    DELETE,
    EMPTY,
    OPTIMIZE,
    ORPHAN,
    READY,
    RESTORE,
    Driver,
    Entry,
    Log,
    Other,
    State,
    Table,
    Topic,
    put,
)

# Death.


def crash(state: State, guards: Guards, d: int) -> State | None:
    """kill -9 of a driver and its JVM, wherever it is. The OS frees the lock."""
    if state.drivers[d].phase in AT_REST:
        return None
    return put(broken(state, d), d, Driver())


def orphan(state: State, guards: Guards, d: int) -> State | None:
    """Python dies in the middle of a commit; the JVM lives on for a moment."""
    driver = state.drivers[d]
    if driver.phase != COMMITTING or driver.planned is None or driver.planned.as_files:
        return None  # files are committed by Python itself
    left = driver._replace(phase=ORPHAN, pending=(), attempt=None, unsent=())
    return put(broken(state, d), d, left)


def lose_checkpoint(state: State, guards: Guards, d: int) -> State | None:
    """A checkpoint is lost; nothing happens where nobody would have read it."""
    if not state.scratch or state.scratch[d] is None:
        return None
    scratch = (*state.scratch[:d], None, *state.scratch[d + 1 :])
    return state._replace(scratch=scratch)


# Kafka.


def produce(state: State, guards: Guards, until: int) -> State | None:
    """Records arrive, up to the offset ``until``."""
    topic = state.topic
    if topic.end != topic.high or until <= topic.end:
        return None
    return state._replace(topic=topic._replace(high=until, end=until))


def settle(state: State, guards: Guards, committed: bool) -> State | None:
    """The open transaction at the end of the topic is committed or aborted."""
    topic = state.topic
    if topic.end == topic.high:
        return None
    aborted = () if committed else tuple(range(topic.high, topic.end))
    topic = topic._replace(high=topic.end, aborted=topic.aborted + aborted)
    return state._replace(topic=topic)


def expire(state: State, guards: Guards, low: int) -> State | None:
    """Retention deletes the records before ``low``."""
    topic = state.topic
    if not topic.low < low <= topic.high:
        return None
    return state._replace(topic=topic._replace(low=low))


def leap(state: State, guards: Guards, d: int) -> State | None:
    """Spark goes on behind the records that retention took, as if ``failOnDataLoss`` were off."""
    driver = state.drivers[d]
    if driver.phase != READY or driver.stream is None or driver.stream >= state.topic.low:
        return None
    return put(state, d, driver._replace(stream=state.topic.low))


def recreate(state: State, guards: Guards, high: int) -> State | None:
    """The topic is deleted and created again; it holds other records under the same offsets."""
    before = state.topic
    topic = Topic(before.id + 1, 0, high, high, before.bad, cuts=before.cuts)
    return state._replace(topic=topic)


def cut(state: State, guards: Guards, high: int) -> State | None:
    """An unclean leader election: the log ends at ``high``, and other records may follow."""
    topic = state.topic
    if not topic.low <= high < topic.high == topic.end or topic.aborted:
        return None
    cuts = (*topic.cuts, (topic.id, high))
    return state._replace(topic=topic._replace(high=high, end=high, cuts=cuts))


# Other writers of the table.


def optimize(state: State, guards: Guards) -> State | None:
    """A commit that changes no row: OPTIMIZE, a new property, another pipeline's batch.

    On a local disk it replaces what the driver has committed since it looked, if it is not kept
    away.
    """
    *before, newest = state.table.log
    if not (guards.commit_lock or guards.put_if_absent) and _by_driver(newest):
        state = state._replace(table=state.table._replace(log=tuple(before)))
    return _commit(state, Other(OPTIMIZE))


def _by_driver(commit: Entry | Other) -> bool:
    return isinstance(commit, Entry) and commit.as_files


def alter(state: State, guards: Guards, asks: bool) -> State | None:
    """The table gets another definition: one that is understood, or asks for Spark's writer."""
    return _commit(state, Other(ASK if asks else ALTER))


def vacuum(state: State, guards: Guards) -> State | None:
    """VACUUM takes files that wait, which no commit names and which are old by now."""
    waiting = [d for d, each in enumerate(state.drivers) if each.waiting and each.waiting.there]
    for d in waiting:
        driver = state.drivers[d]
        assert driver.waiting
        state = put(state, d, driver._replace(waiting=driver.waiting._replace(there=False)))
    return state if waiting else None


def restore(state: State, guards: Guards, version: int) -> State | None:
    """RESTORE to an older version: the rows go back, the ``txn`` stays."""
    if not state.table.first <= version < len(state.table.log) - 1:
        return None
    return _commit(state, Other(RESTORE, version))


def empty(state: State, guards: Guards) -> State | None:
    """TRUNCATE, REPLACE, DELETE or overwrite of everything."""
    return _commit(state, Other(EMPTY))


def delete(state: State, guards: Guards, offset: int) -> State | None:
    """DELETE of the row of one record, on purpose: nothing is undone by it."""
    return _commit(state, Other(DELETE, offset=offset))


def _commit(state: State, commit: Other) -> State:
    return state._replace(table=state.table._replace(log=(*state.table.log, commit)))


# Time, and what an operator does to folders.


def trim(state: State, guards: Guards, first: int) -> State | None:
    """Log clean-up takes the JSON before version ``first``; the snapshot keeps the ``txn``.

    Entries that wait to be projected were committed a moment ago: it takes none while their driver
    lives, and later all of them, or none.
    """
    table = state.table
    if not table.first < first < len(table.log):
        return None
    known = projected(table.offsets)
    waiting = [n for n, e in enumerate(table.log) if isinstance(e, Entry) and e.sequence > known]
    lives = any(each.pending for each in state.drivers)
    if waiting and waiting[0] < first and (lives or first <= waiting[-1]):
        return None
    if guards.trouble_outlives_cleanup and not _answered(table.log, first):
        return None
    return state._replace(table=table._replace(first=first))


def _answered(log: Log, first: int) -> bool:
    """Whether nothing before ``first`` is what a start halts for.

    That is an undoing which nobody put right or accepted, or a ledger that is broken.
    """
    before = walk(log[:first], 0, True, True)
    return not (before.undone_at or before.written_over_at or walk(log, 0, True, True).broken)


def drop(state: State, guards: Guards) -> State | None:
    """The table is dropped and made anew at the same place, while nothing runs."""
    if _running(state):
        return None
    before = state.table
    table = Table((Other(CREATE),), 0, before.quarantine, before.offsets)
    return state._replace(table=table)


def lose_tail(state: State, guards: Guards, version: int) -> State | None:
    """The table's folder is put back from a backup that ends at ``version``."""
    table = state.table
    if _running(state) or not table.first <= version < len(table.log) - 1:
        return None
    return state._replace(table=table._replace(log=table.log[: version + 1]))


def lose_offsets(state: State, guards: Guards, entries: int) -> State | None:
    """The offsets table is lost, or put back from a backup: its first ``entries`` stay.

    Nothing runs meanwhile.
    """
    table = state.table
    if _running(state) or not entries < len(table.offsets):
        return None
    return state._replace(table=table._replace(offsets=table.offsets[:entries]))


def _running(state: State) -> bool:
    # One that has halted still brings the offsets table up to date, and a put may be under way.
    return bool(state.late) or any(
        each.phase not in AT_REST or each.pending for each in state.drivers
    )
