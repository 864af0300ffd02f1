"""How values are encoded, as settings of ``source``: each format says which of them it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from rivermouth.config.columns import Column
from rivermouth.config.formats import FORMATS
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused
from rivermouth.config.registry import resolve
from rivermouth.config.settings import Model, Written, one_of, or_reference, some_of
from rivermouth.config.values import OnEmpty, read_choice, read_names


class Unit(Enum):
    """What a whole number in a TIMESTAMP column counts since 1970."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"
    NANOSECONDS = "ns"


class Fraction(Enum):
    """What becomes of a part of a time that is less than a microsecond."""

    CUT = "cut"


UnitChoice = Annotated[
    Unit,
    BeforeValidator(lambda value: read_choice(Unit, value)),
    Written(one_of(lambda: [each.value for each in Unit])),
]
FractionChoice = Annotated[
    Fraction,
    BeforeValidator(lambda value: read_choice(Fraction, value)),
    Written(one_of(lambda: [each.value for each in Fraction])),
]


class Timestamps(Model):
    """How times in records are read, beyond text of whole microseconds."""

    unit: UnitChoice | None = Field(
        default=None,
        description="What a whole number in a `TIMESTAMP` column counts since 1970-01-01 UTC."
        " Without it, such a number makes the record bad.",
    )
    fraction: FractionChoice | None = Field(
        default=None,
        description="`cut`: what is less than a microsecond is cut, towards the past. Without it,"
        " such a time makes the record bad.",
    )

    @property
    def given(self) -> dict[str, str]:
        """What is given, by its key; plain text."""
        given = {"unit": self.unit, "fraction": self.fraction}
        return {key: each.value for key, each in given.items() if each is not None}


class Framing(Enum):
    """Where a value names its schema."""

    NONE = "none"
    CONFLUENT = "confluent"
    """A zero byte, and the number of a schema in four bytes, as serialisers with a registry do."""
    HEADER = "header"
    """The number stands in a header of the record, as Apicurio's serialisers write it."""


FramingChoice = Annotated[
    Framing,
    BeforeValidator(lambda value: read_choice(Framing, value)),
    Written(one_of(lambda: [each.value for each in Framing])),
]


def _read_delimiter(value: object) -> str:
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be one character, not {value}"))
    if len(value) != 1 or value in '"\r\n':
        fix = "no quote and no line break"
        raise Refused(Fault(Kind.BAD_VALUE, "{path} must be one character, not {value}", fix=fix))
    return value


def _check_null(value: str) -> str:
    if any(each in value for each in '"\r\n'):
        fix = "write a text without quotes and line breaks"
        raise Refused(Fault(Kind.BAD_VALUE, "{path} can stand in no field: {value}", fix=fix))
    return value


class Csv(Model):
    """How lines of CSV are written."""

    delimiter: Annotated[str, BeforeValidator(_read_delimiter)] | None = Field(
        default=None, description="The character between two fields. By default a comma."
    )
    null_value: Annotated[str, AfterValidator(_check_null)] | None = Field(
        default=None,
        description="The text of a field that is null, if it is not in quotes. By default it is"
        " empty.",
    )

    @property
    def given(self) -> dict[str, str]:
        """What is given, by its key."""
        given = {"delimiter": self.delimiter, "null_value": self.null_value}
        return {key: each for key, each in given.items() if each is not None}


def _read_file(value: object, info: ValidationInfo) -> Path:
    """A file; a relative path begins at the folder of the configuration. Raises ``Refused``."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
        raise Refused(Fault(kind, "{path} must be the path of a file, not {value}"))
    path = info.context["folder"] / value if info.context else Path(value)
    if not path.is_file():
        raise Refused(Fault(Kind.BAD_VALUE, "{path} names a file that is not there: {value}"))
    return path.resolve()


SchemaFile = Annotated[
    Path,
    BeforeValidator(_read_file),
    Written(lambda: or_reference({"type": "string"}), "file"),
]


_NONE = "its decoder takes no such setting; remove it"
_UNSET = (None, (), OnEmpty.QUARANTINE)


def _leniencies() -> list[str]:
    return [*dict.fromkeys(name for each in FORMATS.by_name.values() for name in each.lenient)]


Lenient = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: read_names(_leniencies(), value)),
    Written(some_of(_leniencies), "list of names, see below"),
]


def fits_the_format(setting: str, *keys: str) -> Callable[..., Iterator[Fault]]:
    """The rule that the format of records has a decoder that knows a setting of ``source``.

    ``keys`` are those of the section that it is, if it is one.
    """

    def faults(known: str, *values: object) -> Iterator[Fault]:
        if setting in FORMATS.by_name[known].settings:
            return
        taking = [name for name, each in FORMATS.by_name.items() if setting in each.settings]
        message = f"{{path}} has no meaning for format {known}"
        fix = f"write format: {' or '.join(taking)}, or remove it" if taking else _NONE
        paths: Sequence[KeyPath] = [(each,) for each in keys] or [()]
        for path, value in zip(paths, values, strict=True):
            if value not in _UNSET:
                whole: KeyPath = ("source", setting, *path)
                yield Fault(Kind.BAD_VALUE, message, path=whole, fix=fix, at_key=True)

    return faults


def leniencies_fit(known: str, lenient: tuple[str, ...]) -> Iterator[Fault]:
    """The rule that each name of ``source.lenient`` has a meaning for the format."""
    takes = FORMATS.by_name[known].lenient
    for index, name in enumerate(lenient if takes else ()):
        if name not in takes:
            message = f"{{path}} is {{value}}, which has no meaning for format {known}"
            fix = f"it may have: {', '.join(takes)}"
            yield Fault(Kind.BAD_VALUE, message, path=("source", "lenient", index), fix=fix)


def framing_of(known: str, framing: Framing | None, file: Path | None) -> Framing:
    """What stands ahead of values: as it is given, or as the format has it."""
    by_schema = FORMATS.by_name[known].schema_text is not None and file is None
    return framing or (Framing.CONFLUENT if by_schema else Framing.NONE)


def has_the_number(known: str, framing: Framing | None) -> Iterator[Fault]:
    """The rule that only records of Avro are whole without what stands ahead of them."""
    if framing is Framing.HEADER and known != "avro":
        text = f"{{path}} is {{value}}, which has no meaning for format {known}"
        fix = "write framing: confluent, or format: avro"
        yield Fault(Kind.BAD_VALUE, text, path=("source", "framing"), fix=fix)


def one_schema(
    known: str, framing: Framing | None, file: Path | None, message: str | None
) -> Iterator[Fault]:
    """The rule that records name their schema, or that a file has it."""
    if FORMATS.by_name[known].schema_text is None:
        return
    framed = framing_of(known, framing, file) is not Framing.NONE
    for setting, value in (("schema_file", file), ("message", message)):
        if framed and value is not None:
            text = "{path} has no meaning for framed values: each names its own"
            fix = "remove it, or write framing: none"
            path: KeyPath = ("source", setting)
            yield Fault(Kind.BAD_VALUE, text, path=path, fix=fix, at_key=True)
    if not framed and file is None:
        text = f"{{path}} is {{value}}, but nothing says which schema {known} records have"
        fix = "name a schema_file, or write framing: confluent"
        yield Fault(Kind.BAD_VALUE, text, path=("source", "framing"), fix=fix)


def schema_is_sound(known: str, file: Path | None) -> Iterator[Fault]:
    """The rule that ``source.schema_file`` holds a schema of the format."""
    try:
        schema_text(known, file)
    except (OSError, ValueError) as fault:
        text = f"{{path}} names a file that holds no schema of {known}: {fault}"
        yield Fault(Kind.BAD_VALUE, text, path=("source", "schema_file"))


@lru_cache
def schema_text(known: str, file: Path | None) -> str | None:
    """The schema in a file, as decoders take it; read once. Raises ValueError and OSError."""
    reference = FORMATS.by_name[known].schema_text
    if reference is None or file is None:
        return None
    text: str = resolve(reference)(file)
    return text


def has_such_columns(known: str, columns: tuple[Column, ...]) -> Iterator[Fault]:
    """The rule that the format can hold columns of such types, and so many."""
    its = FORMATS.by_name[known]
    if its.single and len(columns) > 1:
        message = f"{{path}} has {len(columns)} columns, but a value of format {known} is one"
        yield Fault(Kind.BAD_SCHEMA, message, path=("schema",), fix="leave one column")
    for each in columns if its.types else ():
        if each.kind not in its.types:
            message = f"{{path}} has the column {each.name} of type {each.kind}"
            fix = f"format {known} has: {', '.join(its.types)}"
            yield Fault(Kind.BAD_SCHEMA, message, path=("schema",), fix=fix)
