"""What can be wrong with a configuration: the kinds, with their codes, and one line each.

A reader of a value raises ``Refused`` with one or more ``Fault``. It does not know where the value
is in the file. The loader knows it, and makes a ``Problem`` of each fault.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

KeyPath = tuple[str | int, ...]
"""Where a value is: mapping keys and list indices from the top of the file."""


class Kind(Enum):
    """One kind of problem: its code and its meaning in one line."""

    FILE = ("RM101", "the configuration file cannot be read or is empty")
    SYNTAX = ("RM102", "the file is not the plain YAML that a configuration may use")
    DUPLICATE_KEY = ("RM103", "a key is given twice in one mapping")
    UNKNOWN_KEY = ("RM104", "a key that does not exist")
    MISSING_KEY = ("RM105", "a required key is missing")
    WRONG_TYPE = ("RM106", "a value of the wrong type")
    BAD_VALUE = ("RM107", "a value of the right type that is not allowed")
    NO_VARIABLE = ("RM108", "an environment variable is not set")
    BAD_REFERENCE = ("RM109", "a ${…} reference of an unknown kind or form")
    TWO_NAMES = ("RM110", "a setting is given under its name and under an alias")
    NOT_YOURS = ("RM111", "an option that would weaken the guarantee or that rivermouth sets")
    BAD_SCHEMA = ("RM112", "the schema text cannot be read")
    BAD_COLUMN = ("RM113", "a column or field name that is reserved, repeated or not allowed")
    NO_COLUMN = ("RM114", "a column is named that the schema does not have")
    KEYS_AND_MODE = ("RM115", "keys, order_by, metrics or metadata do not fit the mode")
    COLUMN_TYPE = ("RM116", "a column that target names has an unsuitable type")
    MESSAGE_KEY = ("RM117", "source.key does not fit the mode or the key columns")
    OTHER_TOPIC = ("RM118", "start names a topic that is not read")
    RESERVED_TABLE = ("RM119", "the target is a table that rivermouth keeps for itself")
    SHARED_TABLE = ("RM120", "two pipelines write one table in ways that do not go together")
    REPEATED = ("RM121", "a list names the same thing twice")
    LOGIN = ("RM122", "a login that is incomplete, or that one of the two Kafka clients cannot use")
    SHARED_LEDGER = ("RM123", "a ledger that is another pipeline's, or has its name")
    SHARED_GROUP = ("RM124", "two pipelines mirror one topic into one consumer group")
    TRANSFORM = ("RM125", "transform, select, each or target.schema cannot be used so")
    SINK = ("RM126", "a target that is no table does not fit another setting")

    def __init__(self, code: str, meaning: str) -> None:
        self.code = code
        self.meaning = meaning


def codes() -> dict[str, str]:
    """Every code of a configuration with its meaning in one line, in order."""
    return {kind.code: kind.meaning for kind in Kind}


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a value, in words, without its place.

    ``message`` may hold ``{path}`` (the setting), ``{value}`` (the whole value as written)
    and ``{found}`` (``found``, a part of the user's text). Only the last two may show text of
    the user. Text that came from the environment, or is a secret, is replaced.

    ``path`` leads from the value to its faulty part. ``offset`` is where ``found`` starts in the
    text of the value. ``at_key`` points at the key instead of the value, and ``place`` at a line
    and column of its own. ``quotes`` leads to another setting, whose text ``suggestion`` or
    ``fix`` repeats.
    """

    kind: Kind
    message: str
    found: str = ""
    suggestion: str = ""
    fix: str = ""
    path: KeyPath = ()
    offset: int | None = None
    at_key: bool = False
    place: tuple[int, int] | None = None
    quotes: KeyPath = ()


class Refused(ValueError):
    """A value is refused; ``faults`` says why, in the order of the text."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("; ".join(fault.message for fault in faults))


Checked = TypeVar("Checked")


def checked(value: Checked, faults: Iterable[Fault]) -> Checked:
    """The value, if there are no faults of it; raises ``Refused``."""
    found = tuple(faults)
    if found:
        raise Refused(*found)
    return value


@dataclass(frozen=True, order=True)
class Problem:
    """A fault with its place; sorts by it. Line and column count from 1; 0 means none."""

    line: int
    column: int
    code: str
    text: str

    def render(self, file: str) -> str:
        """One line: ``lake.yml:6:7 RM104 …``."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place} {self.code} {self.text}"


def sentence(fault: Fault, path: str, value: str, found: str, suggestion: str) -> str:
    """The words of a problem, on one line."""
    words = {"path": path or "the file", "value": value, "found": found}
    text = re.sub(r"\{(path|value|found)\}", lambda match: words[match[1]], fault.message)
    if suggestion:
        text += f" — did you mean {quoted(suggestion)}?"
    return f"{text} — {fault.fix}" if fault.fix else text


def printable(text: str) -> str:
    """The text on one line: unprintable characters are escaped, a long text is cut."""
    shown = text if len(text) <= 60 else text[:59] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )


def quoted(text: str) -> str:
    return f'"{printable(text)}"'


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that was most likely meant, or nothing."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else ""


def listed(words: Iterable[str]) -> str:
    """``a, b, c``: for the end of a message."""
    return ", ".join(words)


def repeated(values: Iterable[str]) -> Iterable[Fault]:
    """A fault for each value that is already in the list before it."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            message = "{path} repeats {found}"
            yield Fault(Kind.REPEATED, message, value, path=(index,), fix="remove one of them")
        seen.add(value)
