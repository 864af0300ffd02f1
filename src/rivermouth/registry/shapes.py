"""Shapes: what the records of a pipeline become in its table (``target.mode``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from rivermouth.registry.references import Reference


@dataclass(frozen=True)
class Shape:
    """One mode of a pipeline.

    ``summary`` is half a sentence for people. ``changes`` is ``(Pipeline) -> write.rows.Rows``:
    what records become. ``proof`` is what ``verify`` does with its tables, see ``verify.proofs``.
    These flags say which settings have a meaning; a setting without one is refused. ``keyed``:
    ``keys`` identify a row. ``ordered``: ``order_by`` says which of two rows is newer.
    ``deletes``: if ``source.key`` is given, a null value deletes the row of its key. ``totals``:
    ``metrics`` say what is measured of each key; a row is of many records, and has no ``_kafka``.
    ``since``: the proof can begin after an entry, see ``verify.subject.Subject.begins``.
    ``erasable``: rows that others delete can be accepted as gone, since no later record means
    another thing then. ``again`` is ``(Pipeline, ranges of entries by sequence) ->
    write.rows.Keyed``: how records that were read before are applied once more, so that a row that
    is right stays; None: nobody can. ``again_whole``: it needs every record that was ever read.
    ``elsewhere``: a replay may write the rows of some records into a table of their own.
    ``transforms``: the rows may be made by ``transform`` or ``select``; the proof does not need
    their values.
    ``sends``: the rows go to a sink, and the table holds the ledger alone.
    """

    name: str
    summary: str
    changes: Reference
    proof: Reference
    keyed: bool = False
    ordered: bool = False
    deletes: bool = False
    totals: bool = False
    since: bool = False
    erasable: bool = True
    again: Reference | None = None
    again_whole: bool = False
    elsewhere: bool = False
    transforms: bool = False
    sends: bool = False


@dataclass
class Shapes:
    """The shapes that are known, by name."""

    by_name: dict[str, Shape] = field(default_factory=dict)

    def register(self, known: Shape) -> None:
        """Add a shape, or replace the one of its name."""
        self.by_name[known.name] = known


SHAPES = Shapes(
    by_name={
        "append": Shape(
            name="append",
            summary="add a row for each record",
            changes="rivermouth.write.shapes.append:append",
            proof="rivermouth.verify.proofs.append:verify_append",
            since=True,
            elsewhere=True,
            transforms=True,
        ),
        "upsert": Shape(
            name="upsert",
            summary="keep the newest row of each key",
            changes="rivermouth.write.shapes.latest:latest",
            proof="rivermouth.verify.proofs.latest:verify_latest",
            keyed=True,
            ordered=True,
            deletes=True,
            since=True,
            again="rivermouth.write.shapes.latest_again:latest_again",
            elsewhere=True,
        ),
        "insert": Shape(
            name="insert",
            summary="keep the first row of each key",
            changes="rivermouth.write.shapes.first:first",
            proof="rivermouth.verify.proofs.first:verify_first",
            keyed=True,
            erasable=False,
            again="rivermouth.write.shapes.first_again:first_again",
            again_whole=True,
            elsewhere=True,
        ),
        "aggregate": Shape(
            name="aggregate",
            summary="keep totals of each key",
            changes="rivermouth.write.shapes.totals:totals",
            proof="rivermouth.verify.proofs.totals:verify_totals",
            keyed=True,
            totals=True,
            erasable=False,
            elsewhere=True,
        ),
        "send": Shape(
            name="send",
            summary="send each record to `kafka` or to `foreach_partition`; it need not be written",
            changes="rivermouth.write.shapes.send:send",
            proof="rivermouth.verify.proofs.sent:verify_sent",
            transforms=True,
            sends=True,
        ),
    },
)
