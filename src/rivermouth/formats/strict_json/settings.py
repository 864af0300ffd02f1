"""What a pipeline says about its JSON records beside their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Unit = Literal["s", "ms", "us", "ns"]
Leniency = Literal["number_in_text", "anything_as_text", "repeated_names", "any_case"]

DEPTH = 500
"""The most objects and arrays in each other."""


class ColumnLike(Protocol):
    """A column: its name, and its type as normalised SQL text."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...


@dataclass(frozen=True)
class JsonSettings:
    """``unit``: what a whole number in a TIMESTAMP counts; None refuses numbers. ``cut``: what is
    less than a microsecond is cut. ``lenient``: what is taken beside.
    """

    unit: Unit | None = None
    cut: bool = False
    lenient: frozenset[Leniency] = frozenset()
