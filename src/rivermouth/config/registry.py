"""What a file may choose by name: formats, shapes, ways to land rows, and where their code is."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rivermouth.config.platforms import Capability, Platform
from rivermouth.errors import ConfigError, MissingPackage, RivermouthError

Reference = str
"""``module:name``, for example ``rivermouth.formats.json:value``."""


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


@dataclass(frozen=True)
class KeyForm:
    """How a message key holds the key columns (``source.key``).

    ``decoder`` is ``(Sequence[Column], settings) -> pyspark Column``: a struct of the key columns,
    made from the column ``key``; null where the key does not give them. Or what it gives is a
    ``formats.arrow.InArrow``. ``reader`` is the checker's own reading, see
    ``verification.formats``. ``single``: it holds one column; ``integral``: of integers.
    ``in_task`` is ``(Sequence[Column], settings) -> formats.arrow.InArrow | None``: the same
    without Spark; None: Spark decodes, then or always.
    ``version`` is as in ``Format``, and so are the settings: those that the format takes.
    """

    name: str
    decoder: Reference
    reader: Reference
    single: bool = False
    integral: bool = False
    version: int = 1
    in_task: Reference | None = None


@dataclass(frozen=True)
class Format:
    """How the value of a record is encoded (``source.format``).

    ``decoder`` is ``(Sequence[Column], settings) -> formats.decoder.ValueDecoder``. ``reader`` is
    the checker's own reading, see ``verification.formats``. ``settings`` are the names of those
    settings of ``source`` that both take. ``reasons`` says what each code of the decoder means.
    ``key`` is its form for message keys, if it has one. ``in_task`` is ``(Pipeline) ->
    formats.tasks.InTask``: the same decoder without Spark, for tasks that write the rows, fold
    them to totals or divert bad ones; None: Spark decodes before them. Such a format also
    decodes ``in_arrow`` (``ValueDecoder``).

    ``version`` counts what the decoder makes of the same bytes. Each entry of a ledger names that
    of its records, if it is not 1. Raises ValueError if ``reasons`` redefine a code that any format
    has.
    """

    name: str
    decoder: Reference
    reader: Reference
    reasons: Mapping[str, str]
    key: KeyForm | None = None
    in_task: Reference | None = None
    version: int = 1
    settings: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        taken = REASONS.keys() & self.reasons.keys()
        if taken:
            codes = ", ".join(sorted(taken))
            raise ValueError(f"format {self.name}: {codes} has the same meaning in every format")

    @property
    def all_reasons(self) -> dict[str, str]:
        """Why a record of this format may go to quarantine, by code."""
        return {**REASONS, **self.reasons}


REASONS: Mapping[str, str] = {
    "RM601": "a null value, which names no row to delete here",
    "RM602": "an empty value",
    "RM604": "the message key does not give the key columns",
    "RM605": "a key column is null",
    "RM606": "with the records of its key in this batch, a sum would not fit into its column",
    "RM607": "the column that names the topic to send it to is null",
    "RM608": "the column that names the topic to send it to holds none of the configured topics",
    "RM609": "the column that names the partition to send it to is negative",
}
"""Why a record of any format may go to quarantine, by code."""


_JSON: Reference = "rivermouth.verification.formats.json:reader"
SENT: Reference = "rivermouth.verification.formats.json:sent"
"""The checker's reader of records that were sent to a topic: Spark's ``to_json`` writes them."""


@dataclass
class Formats:
    """The formats that are known, by name."""

    by_name: dict[str, Format] = field(default_factory=dict)
    plain_keys: dict[str, KeyForm] = field(default_factory=dict)

    def register(self, known: Format) -> None:
        """Add a format, or replace the one of its name."""
        self.by_name[known.name] = known

    def register_key(self, known: KeyForm) -> None:
        """Add a form of message keys that belongs to no format, or replace the one of its name."""
        self.plain_keys[known.name] = known

    @property
    def keys(self) -> dict[str, KeyForm]:
        """The forms of message keys, by name: plain ones, and those of formats."""
        of_formats = (each.key for each in self.by_name.values())
        return {**self.plain_keys, **{each.name: each for each in of_formats if each is not None}}


FORMATS = Formats(
    by_name={
        "json": Format(
            name="json",
            decoder="rivermouth.formats.json:value",
            reader=_JSON,
            reasons={
                "RM603": "the value is not one JSON object that fits the configured schema",
            },
            key=KeyForm(
                name="json",
                decoder="rivermouth.formats.json:key",
                in_task="rivermouth.formats.json:key",
                reader=_JSON,
            ),
            in_task="rivermouth.formats.json:in_task",
            settings=frozenset({"timestamps", "lenient"}),
        ),
    },
    plain_keys={
        "string": KeyForm(
            name="string",
            decoder="rivermouth.formats.keys:string",
            in_task="rivermouth.formats.keys:string_in_task",
            reader="rivermouth.verification.formats.keys:string",
            single=True,
        ),
        "long": KeyForm(
            name="long",
            decoder="rivermouth.formats.keys:long",
            in_task="rivermouth.formats.keys:long_in_task",
            reader="rivermouth.verification.formats.keys:long",
            single=True,
            integral=True,
        ),
    },
)


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
            needs=frozenset({Capability.ONE_HOST}),
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
            needs=frozenset({Capability.ONE_HOST}),
            make="rivermouth.write.landings.files:FilesLanding",
        ),
        Landing(
            name="merge",
            keyed=True,
            needs=frozenset({Capability.MERGE_WITH_TRANSACTION, Capability.CACHE}),
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
