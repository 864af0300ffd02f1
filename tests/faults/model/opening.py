"""What a start reads, and every guard that it has to pass before it may write. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tests.faults.model.guards import Guards
from tests.faults.model.reading import (
    Ledger,
    erasures,
    is_mixed,
    position_after,
    projected,
    recent,
    truth,
    txn,
    walk,
)
from tests.faults.model.state import (
    CHANGE,
    DELETE,
    DISCOVERY,
    ERASURE,
    HEARTBEAT,
    LOSS,
    RESET,
    RESTORE,
    RESUME,
    Entry,
    Log,
    Other,
    Table,
    Topic,
)

STORE_REFUSED = "RM211"
OFFSET_GAP, OFFSET_OVERLAP, SUPERSEDED = "RM401", "RM402", "RM403"
TOPIC_RECREATED, RETENTION_LOST = "RM404", "RM406"
LEDGER_BROKEN, TABLE_UNDONE, LEDGER_TRIMMED = "RM410", "RM411", "RM412"
OFFSETS_TABLE_AHEAD, LOG_TRUNCATED = "RM415", "RM416"
COMMIT_FAILED, BATCH_FAILED = "RM502", "RM503"

# How a start is asked for.
ACCEPT = "accept"  # rivermouth resume --accept restore|reset
TOPIC = "topic"  # rivermouth resume --accept topic
TRUNCATION = "truncation"  # rivermouth resume --accept truncation
DELETES = "deletes"  # rivermouth accept-deletes
RECORD = "record"  # on_data_loss: record
OLD = "old"  # the newest entry is older than a third of the log's retention


class Opening(NamedTuple):
    """A start that passed every guard: where it stands, and which entry it owes first.

    ``epoch`` is the leader epoch that this entry names; None: the present one.
    """

    sequence: int
    newest: Entry | None
    stream: int | None
    owes: str = ""
    accepts: int = 0
    epoch: int | None = None


def look(
    table: Table, topic: Topic, guards: Guards, options: Collection[str] = (), at: int | None = None
) -> Opening | str | None:
    """Read the ledger and pass the guards. A text is the code of the halt.

    ``at`` is where the configuration lets a partition start that was never seen. None where
    an operator accepts what did not happen.
    """
    first = recent(table.log, table.first, projected(table.offsets), guards)
    ledger = walk(table.log, first, guards.audit, guards.undo_aware)
    if ledger.broken or ledger.written_over_at:
        return LEDGER_BROKEN
    if ACCEPT in options:
        return _accepted(table, topic, guards, ledger, at)
    newest = ledger.newest
    recovered = newest is None and txn(table.log) > 0
    if recovered:
        newest = None if ledger.undone_at else _recovered(table, guards)
        if newest is None:
            return LEDGER_TRIMMED
    if ledger.undone_at:
        return TABLE_UNDONE
    sequence = newest.sequence if newest else 0
    if guards.txn and txn(table.log) != sequence:
        return LEDGER_BROKEN
    if guards.projection_ahead and projected(table.offsets) > sequence:
        return OFFSETS_TABLE_AHEAD
    if DELETES in options:
        return _erasure(table, guards, ledger)
    if TOPIC in options or TRUNCATION in options:
        return _changed(table, topic, guards, newest, TRUNCATION in options)
    if newest is None:
        return Opening(sequence, newest, at, DISCOVERY)
    owes = HEARTBEAT if recovered or OLD in options else ""
    if newest.until is None:
        return Opening(sequence, newest, at, owes)
    return _in_kafka(Opening(sequence, newest, newest.until, owes), topic, guards, options)


def _recovered(table: Table, guards: Guards) -> Entry | None:
    """The newest entry from the offsets table, where the log has none left and that knows it."""
    rows, mark = table.offsets, txn(table.log)
    if not rows or (guards.projection_compared and projected(rows) != mark):
        return None
    return rows[-1]._replace(sequence=mark)


def _in_kafka(
    opening: Opening, topic: Topic, guards: Guards, options: Collection[str]
) -> Opening | str:
    """Whether Kafka still holds what comes next."""
    if guards.topic_id and opening.newest is not None and opening.newest.topic != topic.id:
        return TOPIC_RECREATED
    stands = opening.stream or 0
    if stands > topic.high or was_cut(topic, guards, opening.newest) is not None:
        return LOG_TRUNCATED
    if stands < topic.low:
        return opening._replace(owes=LOSS) if RECORD in options else RETENTION_LOST
    return opening


def was_cut(topic: Topic, guards: Guards, newest: Entry | None) -> int | None:
    """Where the log was cut below the position of the entry; None where it was not."""
    if not guards.leader_epochs or newest is None or newest.topic != topic.id:
        return None
    end = topic.end_of(newest.epoch)
    return end if end is not None and end < (newest.until or 0) else None


def _erasure(table: Table, guards: Guards, ledger: Ledger) -> Opening | None:
    """An operator accepts a DELETE of others: the first that no entry names."""
    newest = ledger.newest
    if newest is None:
        return None
    named = {version for _, version in erasures(table.log)}
    stands = {version for _, _, version in truth(table.log).deletes}
    for version, commit in enumerate(table.log[table.first :], table.first):
        if version in named or (guards.deletes_stand and version not in stands):
            continue
        if isinstance(commit, Other) and commit.operation == DELETE:
            return Opening(newest.sequence, newest, newest.until, ERASURE, version, newest.epoch)
    return None


def _changed(
    table: Table, topic: Topic, guards: Guards, newest: Entry | None, truncation: bool
) -> Opening | None:
    """An operator accepts that the topic was created again, or that its log was cut.

    A partition that the ledger does not know may begin with it, or not be there yet.
    """
    if newest is None:
        return None
    if guards.topic_outlives_batch and is_mixed(table.log, topic):
        return None
    if truncation:
        at = was_cut(topic, guards, newest)
        start = at if guards.changes_start_over else newest.until
        return None if at is None else Opening(newest.sequence, newest, start, CHANGE)
    if guards.changes_found and newest.topic == topic.id:
        return None
    known = newest.until is not None
    start = topic.low if guards.changes_start_over and known else newest.until
    return Opening(newest.sequence, newest, start, CHANGE)


def _accepted(
    table: Table, topic: Topic, guards: Guards, ledger: Ledger, at: int | None
) -> Opening | str | None:
    """An operator accepts what undid commits, or that the table was dropped and made anew."""
    newest, known = ledger.newest, projected(table.offsets)
    made_anew = newest is None and table.first == 0 and known > 0
    if made_anew:
        return Opening(known, None, at, RESET)
    if newest is None or not ledger.undone_at or not ledger.known:
        return None
    stands = ledger.stands.sequence if ledger.stands else 0
    sequence = max(newest.sequence, known) if guards.resume_above_txn else stands
    undoing = table.log[ledger.undone_at]
    restored = isinstance(undoing, Other) and undoing.operation == RESTORE
    if restored and guards.changes_kept and parts(table.log, topic, ledger.stands):
        return None
    if restored:
        stream, owes = position_after(table.log, ledger.stands, topic.id), RESUME
        stream = at if stream is None else stream
        epoch = ledger.stands.epoch if ledger.stands and guards.epochs_of_restored else None
    else:
        stream, owes, epoch = at, RESET, None
    return Opening(sequence, newest, stream, owes, ledger.undone_at, epoch)


def parts(log: Log, topic: Topic, stands: Entry | None) -> bool:
    """Whether a RESTORE went back to what was read of another topic than there is now, or to before
    a log that was cut was accepted.
    """
    if stands is None:
        return False  # nothing is in effect
    later = (each for each in log if isinstance(each, Entry) and each.sequence > stands.sequence)
    return stands.topic != topic.id or any(each.kind == CHANGE for each in later)
