"""Formats of record values, and forms of message keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.registry.references import Reference


@dataclass(frozen=True)
class KeyForm:
    """How a message key holds the key columns (``source.key``).

    ``decoder`` is ``(Sequence[Column]) -> pyspark Column``: a struct of the key columns, made from
    the column ``key``; null where the key does not give them. Or what it gives is a
    ``formats.in_arrow.InArrow``. ``reader`` is the checker's own
    reading, see ``verify.formats``. ``single``: it holds one column; ``integral``: of integers.
    ``version`` and ``earlier`` are as in ``Format``.
    """

    name: str
    decoder: Reference
    reader: Reference
    single: bool = False
    integral: bool = False
    version: int = 1
    earlier: Mapping[int, Reference] = field(default_factory=dict)

    def reader_of(self, version: int) -> Reference | None:
        """The reader of keys that this version of the form took; None where it is not known."""
        return self.reader if version == self.version else self.earlier.get(version)


@dataclass(frozen=True)
class Format:
    """How the value of a record is encoded (``source.format``).

    ``decoder`` is ``(Sequence[Column]) -> formats.decoder.ValueDecoder``. ``reader`` is the
    checker's own reading, see ``verify.formats``. ``reasons`` says what each code of the decoder
    means. ``key`` is its form for message keys, if it has one. ``in_task`` is ``(Pipeline) ->
    formats.in_task.InTask``: the same decoder without Spark, for tasks that write the rows, fold
    them to totals or set bad ones apart; None: Spark decodes before them. Such a format also
    decodes ``in_arrow`` (``ValueDecoder``).

    ``version`` counts what the decoder makes of the same bytes. Each entry of a ledger names that
    of its records, if it is not 1. ``earlier`` are the checker's readers of earlier versions: rows
    that they wrote stay what they are. From version 2 on decoder and reader also get the settings
    of ``source`` that the decoder takes; ``settings`` are their names. Raises ValueError if
    ``reasons`` redefine a code that any format has, and for ``settings`` of version 1, which no
    entry would name.
    """

    name: str
    decoder: Reference
    reader: Reference
    reasons: Mapping[str, str]
    key: KeyForm | None = None
    in_task: Reference | None = None
    version: int = 1
    earlier: Mapping[int, Reference] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        taken = REASONS.keys() & self.reasons.keys()
        if taken:
            codes = ", ".join(sorted(taken))
            raise ValueError(f"format {self.name}: {codes} has the same meaning in every format")
        if self.settings and self.version == 1:
            raise ValueError(f"format {self.name}: settings of the decoder need version 2 or later")

    def reader_of(self, version: int) -> Reference | None:
        """The reader of values that this version decoded; None where it is not known."""
        return self.reader if version == self.version else self.earlier.get(version)

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


_STRICT_JSON: Reference = "rivermouth.verify.formats.strict_json.reader:reader"
_FROM_JSON: Reference = "rivermouth.verify.formats.from_json.reader:reader"
SENT = _FROM_JSON
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
            reader=_STRICT_JSON,
            reasons={
                "RM603": "the value is not one JSON object that fits the configured schema",
            },
            key=KeyForm(
                name="json",
                decoder="rivermouth.formats.json:key",
                reader=_STRICT_JSON,
                version=2,
                earlier={1: _FROM_JSON},
            ),
            in_task="rivermouth.formats.json:in_task",
            version=2,
            earlier={1: _FROM_JSON},
            settings=frozenset({"timestamps", "lenient"}),
        ),
    },
    plain_keys={
        "string": KeyForm(
            name="string",
            decoder="rivermouth.formats.keys:string",
            reader="rivermouth.verify.formats.keys:string",
            single=True,
        ),
        "long": KeyForm(
            name="long",
            decoder="rivermouth.formats.keys:long",
            reader="rivermouth.verify.formats.keys:long",
            single=True,
            integral=True,
        ),
    },
)
