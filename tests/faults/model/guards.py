"""The guards of the protocol, each of which can be taken out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Guards:
    """Every guard of the protocol; True is in place. Removing one must do harm."""

    lock: bool = True
    """One writing process per table (``warehouse.lake.warehouse``)."""
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
    accepts_as_planned: bool = True
    """An undoing is accepted only as long as it is what undid entries, also at a second attempt."""
    contiguity: bool = True
    """A range must start at the position (``batches.misplaced``)."""
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
    exact_version: bool = True
    """Files are committed as the version that follows on the one planned on, or not at all."""
    files_txn: bool = True
    """Their commit carries a ``txn``, too: so Spark's skips a stale one and refuses a rival."""
    trial: bool = True
    """A start tries the store, and halts where several may create one object."""
    kept_unless_refused: bool = True
    """Files of a commit stay until another one was read in its place: a time-out, or an answer that
    there is a conflict (409), does not say that it was not made."""
    own_tries: bool = True
    """A commit of this run that comes late, in whose place it tried another one, is no rival's."""
    commit_lock: bool = True
    """Delta's lock in the JVM is held meanwhile: on a local disk its own commits ask whether a
    version is there, and then rename their file to it."""
    left_to_spark: bool = True
    """A table that asks for more than is understood is not written as files."""
    looked_at: bool = True
    """A batch whose reading Kafka is looked at beside is committed only when that is over."""
    read_again: bool = True
    """And it is read again where a leader changed meanwhile."""
    waits_for_range: bool = True
    """Files that wait are committed for the range only that they were written for."""
    waits_for_definition: bool = True
    """And only into a table that is defined as it was then."""
    waits_whole: bool = True
    """And only while all of them are there."""
    bad_again: bool = True
    """The bad records of files that wait are written again: they carry the id of the attempt."""
    rows_unmoved: bool = True
    """Delta's: a MERGE is refused where rows have come or gone since it read them."""
    acknowledged: bool = True
    """A batch that sends is done only when the sink has acknowledged each of its records: at least
    once it commits only then, at most once it goes on only then."""
    sent_last: bool = True
    """At most once: records are sent only when their commit was read back."""
    sent_once: bool = True
    """At least once: a commit that is tried again does not send its records again."""
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
