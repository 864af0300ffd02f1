"""The packages that rivermouth asks for, with their bounds, as its own metadata declares them."""

from __future__ import annotations

import importlib.metadata
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass

_DECLARED = re.compile(
    r"(?P<package>[\w.-]+) *(?:\[[\w, -]+\])? *(?P<bounds>[^;]*?) *"
    r"(?:; *extra *== *['\"](?P<extra>[\w-]+)['\"])?"
)
_BOUND = re.compile(r"(?P<sign>>=|==|<)(?P<version>\d+(?:\.\d+)*)")
_SIGNS = {">=": operator.ge, "==": operator.eq, "<": operator.lt}


@dataclass(frozen=True)
class Requirement:
    """One package. ``extra`` is the extra that asks for it; empty: every installation does."""

    package: str
    bounds: str
    extra: str = ""

    @staticmethod
    def parse(line: str) -> Requirement:
        """A ``Requires-Dist`` line as we write them. Raises ValueError for any other."""
        read = _DECLARED.fullmatch(line)
        bounds = read["bounds"].replace(" ", "") if read is not None else "?"
        if read is None or any(not _BOUND.fullmatch(each) for each in bounds.split(",") if each):
            raise ValueError(f"no requirement that rivermouth writes: {line}")
        return Requirement(read["package"], bounds, read["extra"] or "")

    @property
    def lowest(self) -> str:
        """The lowest version that is taken; empty where none is named."""
        found = [version for sign, version in self._bounds if sign in (">=", "==")]
        return found[0] if found else ""

    def wrong(self, version: str) -> str:
        """Why a version is not taken, in a word or two; empty: it is."""
        for sign, bound in self._bounds:
            here, there = _comparable(version), _comparable(bound)
            if not _SIGNS[sign](here, there):
                return "too new" if here >= there else "too old"
        return ""

    def __str__(self) -> str:
        return self.package + self.bounds

    @property
    def _bounds(self) -> list[tuple[str, str]]:
        return [(each["sign"], each["version"]) for each in _BOUND.finditer(self.bounds)]


def _comparable(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at their end."""
    begin = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(each) for each in begin[0].split(".")] if begin else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def declared(*extras: str) -> list[Requirement]:
    """What every installation asks for, and these extras, in the order of the metadata.

    Raises PackageNotFoundError where rivermouth is not installed.
    """
    return of_extras(importlib.metadata.requires("rivermouth") or (), extras)


def python() -> Requirement:
    """The Pythons that rivermouth supports. Raises as ``declared``."""
    bounds = importlib.metadata.metadata("rivermouth")["Requires-Python"]
    return Requirement.parse(f"Python{bounds}")


def of_extras(lines: Iterable[str], extras: Iterable[str]) -> list[Requirement]:
    """The same, of the lines of a metadata file."""
    asked = {"", *extras}
    return [each for each in map(Requirement.parse, lines) if each.extra in asked]
