"""What the decoder of a format may be allowed beyond its strict rules: settings of ``source``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator, Field

from rivermouth.config.problems import Fault, Kind, Path, Refused, checked, closest, repeated
from rivermouth.config.values import read_choice
from rivermouth.config.written import Model, Schema, Written, one_of
from rivermouth.registry.formats import FORMATS


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
    def told(self) -> dict[str, str]:
        """What is given, by its key; plain text."""
        given = {"unit": self.unit, "fraction": self.fraction}
        return {key: each.value for key, each in given.items() if each is not None}


_NONE = "its decoder takes no such setting; remove it"
LENIENT = ("number_in_text", "anything_as_text", "repeated_names", "any_case")
"""The names that ``source.lenient`` may have."""


def read_lenient(value: object) -> tuple[str, ...]:
    """Names of what is allowed, each once; raises ``Refused``."""
    if not isinstance(value, list | tuple):
        message = "{path} must be a list of names, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=f"it may have: {', '.join(LENIENT)}"))
    faults: list[Fault] = []
    for index, each in enumerate(value):
        if each not in LENIENT:
            kind = Kind.BAD_VALUE if isinstance(each, str) else Kind.WRONG_TYPE
            meant = closest(each, LENIENT) if isinstance(each, str) else ""
            message = f"{{path}} must be {' or '.join(LENIENT)}, not {{value}}"
            faults.append(Fault(kind, message, suggestion=meant, path=(index,)))
    known = {each: each for each in LENIENT}
    faults += repeated(each if each in known else f"{index}" for index, each in enumerate(value))
    return checked(tuple(known.get(each, "") for each in value), faults)


def _list() -> Schema:
    return {"type": "array", "items": {"enum": [*LENIENT]}, "uniqueItems": True}


Lenient = Annotated[
    tuple[str, ...], BeforeValidator(read_lenient), Written(_list, "list of names, see below")
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
        paths: Sequence[Path] = [(each,) for each in keys] or [()]
        for path, value in zip(paths, values, strict=True):
            if value not in (None, ()):
                whole: Path = ("source", setting, *path)
                yield Fault(Kind.BAD_VALUE, message, path=whole, fix=fix, at_key=True)

    return faults
