"""The variables of the protocol, as small immutable values: all of them tuples.

One partition is modelled. A trace of several is replayed once for each, and agrees only if
every one of them does.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.model.effects import ROWS, Effect, Record, Wrote

# What an entry is for, in the words of a trace. RESET is a "resume" over an emptied table.
DISCOVERY, BATCH, LOSS, HEARTBEAT = "discovery", "batch", "loss", "heartbeat"
RESUME, RESET = "resume", "reset"
# A "resume" that accepts another topic or a log that was cut, and one that accepts a DELETE.
CHANGE, ERASURE = "change", "erasure"
ACCEPTING = (RESUME, RESET, CHANGE, ERASURE)

# What others commit. EMPTY stands for TRUNCATE, REPLACE, and a DELETE or overwrite of all.
CREATE, RESTORE, EMPTY, OPTIMIZE = "CREATE", "RESTORE", "EMPTY", "OPTIMIZE"
DELETE = "DELETE"  # of some rows, on purpose
ALTER, ASK = "ALTER", "ASK"  # another definition; one that asks for Spark's writer

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


DUE, SEEN = "due", "seen"
"""Whether Kafka has still to be looked at beside the reading of a batch."""

NOT_TOLD = -1


class Entry(NamedTuple):
    """A commit of ours as the log holds it: the range ``[start, until)`` and the new position.

    Both are None while the pipeline has never seen the partition. ``read`` is the incarnation
    of the topic that the rows really came from, which no reader of the log can see; ``topic``
    the one that the entry names. ``cuts`` and ``epoch`` are the same for the cuts of its log: how
    many there had been when the rows were read, and the leader epoch that the entry names.
    ``accepts`` is the version of the undoing that an operator
    accepted with a RESUME or RESET, or of the DELETE with an ERASURE. ``base`` is the version that
    its driver had read; a trace does not tell it. ``wrote`` is what the commit does to the
    rows, where the effect tells that. ``made`` is of commits of files: the version of the table's
    definition that they were written for; ``holds`` is the range whose rows they hold, where it is
    another one. A trace tells neither.
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
    wrote: tuple[Wrote, ...] = ()
    made: int = NOT_TOLD
    holds: tuple[int, int] | None = None

    @property
    def as_files(self) -> bool:
        """Whether the driver commits files that its tasks wrote; else Spark commits."""
        return self.made != NOT_TOLD


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

    def record(self, read: int, cuts: int, offset: int) -> Record:
        """The record that was at an offset of an incarnation when there had been so many cuts."""
        before = [at for each, at in self.cuts if each == read][:cuts]
        since = [number for number, at in enumerate(before, 1) if at <= offset]
        return read, max(since, default=0), offset


class Waiting(NamedTuple):
    """Files that a driver has written for a range, and not committed: what they hold, for which
    definition of the table they are made, and whether they are still there.
    """

    start: int
    until: int
    read: int
    cuts: int
    made: int
    there: bool = True


class Late(NamedTuple):
    """A put whose client has given it up, or is dead, and that is still under way to the store: the
    version that it would make, and what that would hold.
    """

    version: int
    entry: Entry


class Driver(NamedTuple):
    """One process that runs the pipeline.

    ``version``, ``sequence`` and ``newest`` are the ledger as it last read it; ``stream`` is
    where Spark stands; ``owes`` the entry that must come before anything is read, and ``epoch``
    the leader epoch that it names; ``pending`` are entries that it has still to project;
    ``snapshot`` is the version its transaction began at. ``attempt`` is the commit id of a batch
    whose records are sent and have not all found their end, ``unsent`` are those still to be sent.
    ``waiting`` are files that a later attempt may commit. ``look`` is whether Kafka is looked at
    beside the reading, and whether that is still to come. ``given_up`` are the commit ids of puts
    of this run that were not answered.
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
    attempt: object = None
    unsent: tuple[Record, ...] = ()
    waiting: Waiting | None = None
    look: str = ""
    given_up: tuple[object, ...] = ()


class Checkpoint(NamedTuple):
    """Spark's checkpoint, as it would survive a driver that resumed from it."""

    batch: int
    start: int
    until: int
    done: bool


class Sent(NamedTuple):
    """A record in the sink, and the commit id under which it was sent."""

    commit: object
    record: Record


class Sink(NamedTuple):
    """What a sink has received. ``broken`` are the commit ids of batches that were under way
    when their driver was killed, or halted, or gave up: nobody else may lose or repeat a record.
    """

    received: tuple[Sent, ...] = ()
    broken: tuple[object, ...] = ()


class State(NamedTuple):
    """Everything. ``scratch`` and ``promised`` stay empty unless a guard is gone.

    ``effect`` is what batches do, always the same; ``sink`` stays empty where they send nothing.
    ``scratch`` holds a checkpoint per driver: a fresh one dies with its run, so there is
    nothing to keep. ``promised`` is where a run without discovery said that it starts. ``late`` are
    puts that an object store may still get. ``last_wins``: it does not look at their condition.
    """

    table: Table
    topic: Topic
    drivers: tuple[Driver, ...]
    scratch: tuple[Checkpoint | None, ...] = ()
    promised: int | None = None
    effect: Effect = ROWS
    sink: Sink = Sink()
    late: tuple[Late, ...] = ()
    last_wins: bool = False


def put(state: State, d: int, driver: Driver) -> State:
    """The state with another driver ``d``."""
    drivers = state.drivers
    return state._replace(drivers=(*drivers[:d], driver, *drivers[d + 1 :]))
