"""What all errors have: a code, facts, and whether a run tries again."""

from __future__ import annotations

import builtins
import re
import sys
from enum import Enum

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Passing(Enum):
    """Whether what an error tells of may pass by itself."""

    NO = "no"
    """Somebody has to act first."""
    IF_A_BATCH_WORKED = "if a batch worked"
    """Code raised it, and would again. It may pass, where the code has made a batch in this run."""
    IF_IT_WORKED = "if it worked"
    """Nobody can tell; it may, where the pipeline was opened in this run before."""
    YES = "yes"


_OF_CODE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""The classes by which Python says that a program does not fit its data, or its libraries."""


def of_python(raised: type[BaseException]) -> Passing:
    """Whether what Python raised may pass, by the class of it.

    The same code on the same records raises the same again. Of a machine or a network, and by any
    other class, nobody can tell.
    """
    if issubclass(raised, ImportError):
        return Passing.NO
    of_code = issubclass(raised, _OF_CODE) and not issubclass(raised, OSError)
    return Passing.IF_A_BATCH_WORKED if of_code else Passing.IF_IT_WORKED


def of_text(raised: str) -> Passing:
    """The same, by what an interpreter says last, as ``KeyError: 'topic'``.

    A class of a library is known where this process has loaded it, too.
    """
    module, _, name = raised.partition(":")[0].strip().rpartition(".")
    known: object = getattr(sys.modules.get(module or builtins.__name__), name, None)
    if isinstance(known, type) and issubclass(known, BaseException):
        return of_python(known)
    return Passing.IF_IT_WORKED


DISK = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Too many open files",
)
"""What a machine says of its disk. It matters most, wherever in a chain of causes it is said."""


def of_the_disk(text: str) -> str:
    """What a text says of the disk; empty where it says nothing of it."""
    return next((each for each in DISK if each in text), "")


class RivermouthError(Exception):
    """A code, an exit code, and facts: ``what`` (a clause), ``where`` (pipeline, table, file).

    ``passes`` says whether a run tries again.
    """

    code: str = "RM000"
    exit_code: int = 1
    default_remedy: str = ""
    default_passes: Passing = Passing.NO

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        remedy: str = "",
        passes: Passing | None = None,
    ) -> None:
        self.what, self.where, self.expected, self.found = what, where, expected, one_line(found)
        self.remedy = remedy or self.default_remedy
        self.passes = Passing.NO if of_the_disk(found) else passes or self.default_passes
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.code} {self.where + ': ' if self.where else ''}{self.what}"
        text += f"; expected {self.expected}" if self.expected else ""
        text += f"; found {self.found}" if self.found else ""
        return f"{text}. {self.remedy}" if self.remedy else text

    def as_dict(self) -> dict[str, str]:
        """The same facts for machines: code, what, where, expected, found, remedy."""
        facts = ("code", "what", "where", "expected", "found", "remedy")
        return {name: getattr(self, name) for name in facts}


def one_line(text: str) -> str:
    """What a foreign library said, in one line: no colours, no traces of where it said so."""
    plain = _ESCAPE.sub("", text).partition("stack backtrace:")[0]
    return " ".join("".join(each for each in word if each.isprintable()) for word in plain.split())
