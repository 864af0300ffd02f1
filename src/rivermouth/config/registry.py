"""What a file may choose by name: shapes, ways to land rows, and where their code is."""

from __future__ import annotations

import pkgutil
import sys
from dataclasses import dataclass, field
from typing import Any

from rivermouth.config.platforms import Capability, Platform
from rivermouth.errors import ConfigError, MissingPackage, RivermouthError

Reference = str
"""``module:name``, for example ``rivermouth.formats.strict_json.decoder:decoder``."""


def own(reference: Reference) -> Any:
    """The function of the user that a configuration names. Raises MissingPackage."""
    try:
        return pkgutil.resolve_name(reference)
    except RivermouthError:
        raise
    except Exception as fault:  # a module of somebody else's may raise anything
        module = reference.partition(":")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        raise MissingPackage(
            "the function cannot be imported",
            where=reference,
            found=f"{type(fault).__name__}: {fault}" + (f" ({file})" if file else ""),
            remedy="Put its module beside the configuration file, install its package, or name its"
            " folder in PYTHONPATH; then run again",
        ) from fault


def resolve(reference: Reference) -> Any:
    """The object that a reference names. Raises MissingPackage where it cannot be imported."""
    try:
        return pkgutil.resolve_name(reference)
    except (ImportError, AttributeError, ValueError) as fault:
        raise MissingPackage(
            "a registration names what cannot be imported",
            where=reference,
            found=str(fault),
            remedy="Correct the registration, or install the package that its module needs",
        ) from fault


FILES = "files"
"""The landing that decides by the table which way its rows take."""
SEND = "send"
"""The landing that sends rows, and decides by the table of its ledger how entries are committed."""


@dataclass(frozen=True)
class Landing:
    """One way of landing rows.

    ``keyed``: it takes changes by key, else rows to add (``write.rows``); ``sends``: it takes rows
    to send. ``needs`` are the capabilities without which it does not work. ``make`` is
    ``(write.landing.Site) -> Landing``.
    """

    name: str
    keyed: bool
    needs: frozenset[Capability]
    make: Reference
    sends: bool = False


@dataclass
class Landings:
    """The landings that are known. The first that fits is taken."""

    in_order: list[Landing] = field(default_factory=list)

    def register(self, known: Landing) -> None:
        """Put a landing before those that are known."""
        self.in_order.insert(0, known)

    def first(self, platform: Platform, *, keyed: bool, sends: bool = False) -> Landing:
        """The one that is taken on a platform. Raises ConfigError if nothing lands such rows."""
        for each in self.in_order:
            fits = each.keyed is keyed and each.sends is sends
            if fits and platform.has(*each.needs):
                return each
        rows = "rows to send" if sends else "changes by key" if keyed else "rows to add"
        raise ConfigError((f"nothing here lands {rows} on the platform {platform.name}",))


LANDINGS = Landings(
    [
        Landing(
            name=FILES,
            keyed=False,
            needs=frozenset({Capability.FILES}),
            make="rivermouth.write.landings.files:FilesLanding",
        ),
        Landing(
            name="dataframe_writer",
            keyed=False,
            needs=frozenset(),
            make="rivermouth.write.landings.dataframe_writer:DataFrameWriter",
        ),
        Landing(
            name=FILES,
            keyed=True,
            needs=frozenset({Capability.FILES}),
            make="rivermouth.write.landings.files:FilesLanding",
        ),
        Landing(
            name="merge",
            keyed=True,
            needs=frozenset({Capability.JVM}),
            make="rivermouth.write.landings.merge:Merge",
        ),
        Landing(
            name="replace_using",
            keyed=True,
            needs=frozenset(),
            make="rivermouth.write.landings.replace_using:replace_using",
        ),
        Landing(
            name=SEND,
            keyed=False,
            needs=frozenset(),
            make="rivermouth.write.landings.send:Send",
            sends=True,
        ),
    ]
)


@dataclass(frozen=True)
class Shape:
    """One mode of a pipeline.

    ``summary`` is half a sentence for people. ``changes`` is ``(Pipeline) -> write.rows.Rows``:
    what records become. ``proof`` proves its tables, see ``verification.proofs``.
    These flags say which settings have a meaning; a setting without one is refused. ``keyed``:
    ``keys`` identify a row. ``ordered``: ``order_by`` says which of two rows is newer.
    ``deletes``: if ``source.key`` is given, a null value deletes the row of its key. ``totals``:
    ``metrics`` say what is measured of each key; a row is of many records, and has no ``_kafka``.
    ``since``: the proof can begin after an entry, see ``verification.subject.Subject.begins``.
    ``erasable``: rows that others delete can be accepted as gone, since no later record means
    another thing then. ``again`` is ``(Pipeline, ranges of entries by sequence) ->
    write.rows.Keyed``: how records that were read before are applied once more, so that a row that
    is right stays; None: nobody can. ``reapply_needs_all``: it needs all records ever read.
    ``elsewhere``: a replay may write the rows of some records into a table of their own.
    ``transforms``: the rows may be made by ``transform`` or ``select``; the proof does not need
    their values.
    ``sends``: the rows go to a sink, and the table holds the ledger alone.
    ``as_files``: rows by key may land as files, see ``write.rows.Keyed.by_files``.
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
    reapply_needs_all: bool = False
    elsewhere: bool = False
    transforms: bool = False
    sends: bool = False
    as_files: bool = False

    @property
    def adds(self) -> bool:
        """Whether records become rows that are added to its table."""
        return not self.keyed and not self.sends


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
            changes="rivermouth.write.rows:append",
            proof="rivermouth.verification.proofs.append:verify_append",
            since=True,
            elsewhere=True,
            transforms=True,
        ),
        "upsert": Shape(
            name="upsert",
            summary="keep the newest row of each key",
            changes="rivermouth.write.shapes.by_key:latest",
            proof="rivermouth.verification.proofs.keyed:verify_latest",
            keyed=True,
            as_files=True,
            ordered=True,
            deletes=True,
            since=True,
            again="rivermouth.write.shapes.by_key:latest_reapplied",
            elsewhere=True,
        ),
        "insert": Shape(
            name="insert",
            summary="keep the first row of each key",
            changes="rivermouth.write.shapes.by_key:first",
            proof="rivermouth.verification.proofs.keyed:verify_first",
            keyed=True,
            as_files=True,
            erasable=False,
            again="rivermouth.write.shapes.by_key:first_reapplied",
            reapply_needs_all=True,
            elsewhere=True,
        ),
        "aggregate": Shape(
            name="aggregate",
            summary="keep totals of each key",
            changes="rivermouth.write.shapes.totals:totals",
            proof="rivermouth.verification.proofs.totals:verify_totals",
            keyed=True,
            as_files=True,
            totals=True,
            erasable=False,
            elsewhere=True,
        ),
        "send": Shape(
            name="send",
            summary="send each record to `kafka` or to `foreach_partition`; it need not be written",
            changes="rivermouth.write.rows:send",
            proof="rivermouth.verification.proofs.sent:verify_sent",
            transforms=True,
            sends=True,
        ),
    },
)
