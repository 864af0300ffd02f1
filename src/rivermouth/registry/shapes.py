"""Shapes: what the records of a pipeline become in its table (``target.mode``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from rivermouth.registry.references import Reference


@dataclass(frozen=True)
class Shape:
    """One mode of a pipeline.

    ``keyed``: rows have ``keys``, may have ``order_by``, and tombstones delete where
    ``source.key`` is given; else none of the three has a meaning. ``changes`` is
    ``(Pipeline) -> write.rows.Rows``: what records become. ``proof`` is what ``verify``
    does with its tables, see ``verify.proofs``. ``summary`` is half a sentence for people.
    """

    name: str
    summary: str
    keyed: bool
    changes: Reference
    proof: Reference


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
            keyed=False,
            changes="rivermouth.write.shapes.append:append",
            proof="rivermouth.verify.proofs.append:verify_append",
        ),
        "upsert": Shape(
            name="upsert",
            summary="keep the newest row of each key",
            keyed=True,
            changes="rivermouth.write.shapes.latest:latest",
            proof="rivermouth.verify.proofs.latest:verify_latest",
        ),
    },
)
