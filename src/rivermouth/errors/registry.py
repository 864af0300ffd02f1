"""The errors of a schema registry, and of records whose schemas it has to be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rivermouth.errors import Passing, SourceError


class RegistryUnreachable(SourceError):
    code = "RM305"
    default_remedy = "Check schema_registry.url and that the registry is up"
    default_passes = Passing.YES


class RegistryRefused(SourceError):
    code = "RM306"
    default_remedy = "Check the options of schema_registry, and the rights of its login"


class SchemasUnknown(SourceError):
    """``numbers`` are those of the schemas. The next attempt asks the registry for them."""

    code = "RM307"
    default_remedy = "Nothing is to do: the registry is asked for them, and the batch is read again"
    default_passes = Passing.YES

    def __init__(self, numbers: Iterable[int], where: str = "") -> None:
        self.numbers = tuple(sorted(numbers))
        super().__init__(_NEW, where=where, found=", ".join(map(str, self.numbers)))

    @classmethod
    def told_by(cls, text: str) -> tuple[int, ...]:
        """The numbers, where the trace of a task says that it raised this; else none."""
        found = re.search(rf"{cls.code} {_NEW}; found ([0-9, ]+)", text)
        return tuple(map(int, found[1].replace(" ", "").strip(",").split(","))) if found else ()


_NEW = "records name schemas that are new"
