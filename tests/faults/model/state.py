"""The variables of the protocol, as small immutable values: all of them tuples.

One partition is modelled. A trace of several is replayed once for each, and agrees only if
every one of them does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# What an entry is for, in the words of a trace. RESET is a "resume" over an emptied table.
DISCOVERY, BATCH, LOSS, HEARTBEAT = "discovery", "batch", "loss", "heartbeat"
RESUME, RESET = "resume", "reset"
# A "resume" that accepts another topic or a log that was cut, and one that accepts a DELETE.
CHANGE, ERASURE = "change", "erasure"
ACCEPTING = (RESUME, RESET, CHANGE, ERASURE)

# What others commit. EMPTY stands for TRUNCATE, REPLACE, and a DELETE or overwrite of all.
CREATE, RESTORE, EMPTY, OPTIMIZE = "CREATE", "RESTORE", "EMPTY", "OPTIMIZE"
DELETE = "DELETE"  # of some rows, on purpose

# Where a driver is. A frozen one (SIGSTOP) is one that takes no step for a while.
DEAD = "dead"
OPENED = "opened"  # every guard passed, the offsets table still lags behind the log
READY = "ready"  # between two batches
PLANNED = "planned"  # decided on a range
STAGED = "staged"  # bad records written ahead
COMMITTING = "committing"  # in Delta's transaction, snapshot read
ORPHAN = "orphan"  # Python is dead, its JVM still commits
RETURNED = "returned"  # the write returned or raised, which says nothing
VERIFIED = "verified"  # the log, read back, says that the commit stands
HALTED = "halted"  # dead, and loudly

AT_REST = (DEAD, HALTED)


NOT_TOLD = -1


class Entry(NamedTuple):
    """A commit of ours as the log holds it: the range ``[start, until)`` and the new position.

    Both are None while the pipeline has never seen the partition. ``read`` is the incarnation
    of the topic that the rows really came from, which no reader of the log can see; ``topic``
    the one that the entry names. ``cuts`` and ``epoch`` are the same for the cuts of its log: how
    many there had been when the rows were read, and the leader epoch that the entry names.
    ``accepts`` is the version of the undoing that an operator
    accepted with a RESUME or RESET, or of the DELETE with an ERASURE. ``base`` is the version that
    its driver had read; a trace does not tell it.
    """

    kind: str
    sequence: int
    start: int | None
    until: int | None
    topic: int = 1
    read: int = 0
    accepts: int = 0
    commit: object = None
    base: int = NOT_TOLD
    epoch: int = 0
    cuts: int = 0


class Other(NamedTuple):
    """A commit of somebody else; ``version`` is where a RESTORE goes back to.

    ``offset`` is that of the record whose row a DELETE takes.
    """

    operation: str
    version: int = 0
    offset: int = NOT_TOLD


Commit = Entry | Other
Log = tuple[Commit, ...]


class Bad(NamedTuple):
    """A row of the quarantine: written ahead of ``commit``, read from this incarnation after so
    many cuts.
    """

    commit: object
    read: int
    offset: int
    cuts: int = 0


class Table(NamedTuple):
    """What lies in the lake.

    ``log`` is the whole history; log clean-up has taken what comes before ``first``. ``offsets``
    is the offsets table: the entries that were projected, in the order in which they came.
    The ``txn`` watermark is not stored: it is ``reading.txn`` of the whole log, since neither
    RESTORE nor clean-up ever takes it back.
    """

    log: Log = (Other(CREATE),)
    first: int = 0
    quarantine: tuple[Bad, ...] = ()
    offsets: tuple[Entry, ...] = ()


class Topic(NamedTuple):
    """What Kafka holds: ``id`` counts incarnations; offsets ``low`` to ``high`` can be read.

    Those from ``high`` to ``end`` belong to an open transaction. ``bad`` offsets cannot be
    decoded, ``aborted`` ones were never committed. ``cuts`` are the unclean leader elections: the
    incarnation, and the offset from which on its records were lost and others may follow.
    """

    id: int = 1
    low: int = 0
    high: int = 0
    end: int = 0
    bad: tuple[int, ...] = ()
    aborted: tuple[int, ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()

    @property
    def epoch(self) -> int:
        """The leader epoch: one more after each cut."""
        return sum(1 for each, _ in self.cuts if each == self.id)

    def end_of(self, epoch: int) -> int | None:
        """Where the log of an earlier epoch ends by now; None where nothing of it is lost."""
        mine = [offset for each, offset in self.cuts if each == self.id]
        return min(mine[epoch:], default=None)

    def record(self, read: int, cuts: int, offset: int) -> tuple[int, int, int]:
        """The record that was at an offset of an incarnation when there had been so many cuts."""
        before = [at for each, at in self.cuts if each == read][:cuts]
        since = [number for number, at in enumerate(before, 1) if at <= offset]
        return read, max(since, default=0), offset


class Driver(NamedTuple):
    """One process that runs the pipeline.

    ``version``, ``sequence`` and ``newest`` are the ledger as it last read it; ``stream`` is
    where Spark stands; ``owes`` the entry that must come before anything is read, and ``epoch``
    the leader epoch that it names; ``pending`` are entries that it has still to project;
    ``snapshot`` is the version its transaction began at.
    """

    phase: str = DEAD
    version: int = 0
    sequence: int = 0
    newest: Entry | None = None
    topic: int = 0
    stream: int | None = None
    owes: str = ""
    accepts: int = 0
    epoch: int = 0
    planned: Entry | None = None
    snapshot: int = 0
    pending: tuple[Entry, ...] = ()
    code: str = ""


class Checkpoint(NamedTuple):
    """Spark's checkpoint, as it would survive a driver that resumed from it."""

    batch: int
    start: int
    until: int
    done: bool


class State(NamedTuple):
    """Everything. ``scratch`` and ``promised`` stay empty unless a guard is gone.

    ``scratch`` holds a checkpoint per driver: a fresh one dies with its run, so there is
    nothing to keep. ``promised`` is where a run without discovery said that it starts.
    """

    table: Table
    topic: Topic
    drivers: tuple[Driver, ...]
    scratch: tuple[Checkpoint | None, ...] = ()
    promised: int | None = None


@dataclass(frozen=True, eq=False)
class Guards:
    """Every guard of the protocol; True is in place. Removing one must do harm."""

    lock: bool = True
    """One writing process per table (``local.lock``)."""
    writer_holds_lock: bool = True
    """The lock is the JVM's, not Python's."""
    put_if_absent: bool = True
    """The store refuses a version that exists; a local file system does not."""
    txn: bool = True
    """Commits carry a ``txn``: Delta skips a stale one and refuses a rival's."""
    ledger_sequence: bool = True
    """Its version is counted in the ledger, not by Spark's batch id."""
    fresh_checkpoint: bool = True
    """A run starts from the ledger, not from a checkpoint that an earlier run left."""
    read_back: bool = True
    """Only the log, read back, says what became of a write."""
    audit: bool = True
    """A start checks the entries that it reads; without, it takes the newest entry's word."""
    read_to_base: bool = True
    """It reads from the version on that the newest entry was planned on, not from the entry on."""
    read_to_restored: bool = True
    """A RESTORE there leads it back to the entry that was in effect at the restored version."""
    undo_aware: bool = True
    """RESTORE, TRUNCATE and REPLACE are followed through the log."""
    resume_above_txn: bool = True
    """An accepted undoing counts on from the ``txn``, not from the entry that stands."""
    contiguity: bool = True
    """A range must start at the position (``plan.decide``)."""
    topic_id: bool = True
    """The topic is still the one whose offsets are recorded."""
    changes_found: bool = True
    """Only another topic that is really there can be accepted."""
    changes_start_over: bool = True
    """It is read from its first record on, and a log that was cut from the cut on."""
    changes_kept: bool = True
    """A RESTORE to before another topic was accepted cannot be accepted."""
    deletes_stand: bool = True
    """Only a DELETE that stands can be accepted: its rows are really gone."""
    leader_epochs: bool = True
    """A log that was cut below the position is noticed, also when it has grown again."""
    epochs_of_restored: bool = True
    """An accepted RESTORE names the epoch in which the log reached to where it goes back to."""
    discovery: bool = True
    """Where a partition starts is recorded before anything is read."""
    read_committed: bool = True
    """Spark reads up to the last stable offset, and no aborted record."""
    entry_always: bool = True
    """A batch that changes no row commits an entry too."""
    quarantine_ahead: bool = True
    """Bad records are written before the commit that accounts for them."""
    quarantine_tagged: bool = True
    """They count only together with that commit, whose id they carry."""
    quarantine_standing: bool = True
    """And only while that commit stands in the table as it is."""
    projection_txn: bool = True
    """The offsets table has a ``txn`` of its own."""
    projection_caught_up: bool = True
    """A start first projects what a dead driver did not."""
    projection_ahead: bool = True
    """An offsets table that knows more than the log halts the start."""
    projection_compared: bool = True
    """It serves in place of a trimmed log only where its sequence is the ``txn``'s."""
    topic_outlives_batch: bool = True
    """Not ours but an assumption: a topic that was created again, or whose log was cut, while a
    batch was being read, and after the last look at it, is not accepted. That batch holds records
    of the new topic, or of the log as it is now."""
    trouble_outlives_cleanup: bool = True
    """Not ours but an assumption: clean-up takes nothing that a start has yet to halt for."""
