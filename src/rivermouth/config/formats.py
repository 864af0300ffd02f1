"""The formats of records and of message keys that a file may choose by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.config.columns import PRIMITIVE
from rivermouth.config.registry import Reference


@dataclass(frozen=True)
class KeyForm:
    """How a message key holds the key columns (``source.key``).

    ``decoder`` and ``reader`` are as in ``Format``, for the key columns; what the key does not give
    is null. ``single``: it holds one column; ``integral``: of integers. ``framed``: the number of a
    schema stands ahead, which a registry knows. ``version`` is as in ``Format``, and so are the
    settings: those that the format takes.
    """

    name: str
    decoder: Reference
    reader: Reference
    single: bool = False
    integral: bool = False
    framed: bool = False
    version: int = 1


@dataclass(frozen=True)
class Format:
    """How the value of a record is encoded (``source.format``).

    ``decoder`` is ``(Sequence[Column], settings) -> formats.arrow.InArrow``. ``reader`` is the
    checker's own reading, see ``verification.formats``. ``settings`` are the names of those
    settings of ``source`` that both take. ``reasons`` says what each code of the decoder means.
    ``key`` is its form for message keys, if it has one. ``schema_text`` is ``(Path) -> str``: the
    schema in a file as decoder and reader take it; it raises ValueError. None: records have none.
    ``columns_of`` is ``(str) -> type``: of such a text the type of the records, as Delta's JSON has
    it; it raises ValueError, too. ``lenient`` are the names that ``source.lenient`` may have.
    ``types`` are the types that its columns may have; none: any. ``single``: it has one column.

    ``version`` counts what the decoder makes of the same bytes. Each entry of a ledger names that
    of its records, if it is not 1. Raises ValueError if ``reasons`` redefine a code that any format
    has.
    """

    name: str
    decoder: Reference
    reader: Reference
    reasons: Mapping[str, str]
    key: KeyForm | None = None
    version: int = 1
    settings: frozenset[str] = frozenset()
    schema_text: Reference | None = None
    columns_of: Reference | None = None
    lenient: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    single: bool = False

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
    "RM610": "the record has none of the fields of the schema",
    "RM614": "a column that is NOT NULL is null",
    "RM615": "the record is not an event that says what happened to which row",
    "RM616": "an event by which all rows of the source went",
    "RM617": "an event that creates a row and does not tell all of its values",
    "RM618": "an event that changes the key of a row",
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


_BAD = {"RM603": "the value is not one of its format that fits the configured schema"}
_FRAMED = {
    "RM611": "the value does not begin with a zero byte and the number of a schema",
}
_BY_SCHEMA = {
    **_BAD,
    **_FRAMED,
    "RM612": "the schema registry does not know the schema that the value names",
    "RM613": "the schema that the value was written with does not fit the configured columns",
}
_OF_NAMES = ("number_in_text", "anything_as_text", "repeated_names", "any_case")
_OF_TIMES = ("boolean_in_text", "count_in_text", "fraction_in_count", "date_as_time")
_OF_TEXT = ("number_in_text", *_OF_TIMES)
_OF_SCHEMA = ("any_case",)
_TEXTS = frozenset({"timestamps", "lenient", "framing"})
_SCHEMAS = frozenset({"framing", "schema_file", "timestamps", "lenient", "on_empty", "from"})
FORMATS = Formats(
    by_name={
        "json": Format(
            name="json",
            decoder="rivermouth.formats.strict_json.decoder:decoder",
            reader=_JSON,
            reasons={**_BAD, **_FRAMED},
            key=KeyForm(
                name="json",
                decoder="rivermouth.formats.strict_json.decoder:decoder",
                reader=_JSON,
            ),
            settings=_TEXTS | {"on_empty", "from"},
            lenient=(*_OF_NAMES, *_OF_TIMES),
        ),
        "avro": Format(
            name="avro",
            decoder="rivermouth.formats.avro.decoder:decoder",
            reader="rivermouth.verification.formats.avro:reader",
            reasons=_BY_SCHEMA,
            key=KeyForm(
                name="avro",
                decoder="rivermouth.formats.avro.decoder:decoder",
                reader="rivermouth.verification.formats.avro:reader",
                framed=True,
            ),
            settings=_SCHEMAS,
            lenient=_OF_SCHEMA,
            schema_text="rivermouth.formats.avro.schema:text_of",
            columns_of="rivermouth.formats.avro.schema:columns_of",
        ),
        "protobuf": Format(
            name="protobuf",
            decoder="rivermouth.formats.protobuf.decoder:decoder",
            reader="rivermouth.verification.formats.protobuf:reader",
            reasons=_BY_SCHEMA,
            key=KeyForm(
                name="protobuf",
                decoder="rivermouth.formats.protobuf.decoder:decoder",
                reader="rivermouth.verification.formats.protobuf:reader",
                framed=True,
            ),
            settings=_SCHEMAS | {"message"},
            lenient=_OF_SCHEMA,
            schema_text="rivermouth.formats.protobuf.files:text_of",
            columns_of="rivermouth.formats.protobuf.schema:columns_of",
        ),
        "csv": Format(
            name="csv",
            decoder="rivermouth.formats.csv:decoder",
            reader="rivermouth.verification.formats.plain:csv",
            reasons={**_BAD, **_FRAMED},
            settings=_TEXTS | {"csv"},
            lenient=_OF_TEXT,
            types=PRIMITIVE,
        ),
        "string": Format(
            name="string",
            decoder="rivermouth.formats.plain:string",
            reader="rivermouth.verification.formats.plain:string",
            reasons={**_BAD, **_FRAMED},
            settings=_TEXTS,
            lenient=_OF_TEXT,
            types=PRIMITIVE,
            single=True,
        ),
        "raw": Format(
            name="raw",
            decoder="rivermouth.formats.plain:raw",
            reader="rivermouth.verification.formats.plain:raw",
            reasons={},
            types=("BINARY",),
            single=True,
        ),
    },
    plain_keys={
        "string": KeyForm(
            name="string",
            decoder="rivermouth.formats.keys:string",
            reader="rivermouth.verification.formats.keys:string",
            single=True,
        ),
        "long": KeyForm(
            name="long",
            decoder="rivermouth.formats.keys:long",
            reader="rivermouth.verification.formats.keys:long",
            single=True,
            integral=True,
        ),
    },
)
