"""Columns of a table: from SQL text such as ``id BIGINT, tags ARRAY<STRING>``.

A small parser of our own: it finds an unknown type before Spark starts, with its line and column,
together with all other problems of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from rivermouth.config.problems import Fault, Kind, Refused, closest

SIMPLE = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
)
PRIMITIVE = (*SIMPLE, "DECIMAL")
NESTED = ("ARRAY", "MAP", "STRUCT")
SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
TYPES = (*PRIMITIVE, *NESTED, *SYNONYMS)
MEANT = {  # names of other systems, which are spelt too differently to be found by resemblance
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TEXT": "STRING",
    "STR": "STRING",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "NUMBER": "DECIMAL",
    "INT64": "BIGINT",
    "INT32": "INT",
    "BYTES": "BINARY",
    "LIST": "ARRAY",
    "OBJECT": "STRUCT",
}
LISTING = ", ".join((*SIMPLE, "DECIMAL(p,s)", "ARRAY<…>", "MAP<STRING, …>", "STRUCT<…>"))
"""The types as a user writes them."""


@dataclass(frozen=True)
class Column:
    """``type`` is SQL text, normalised: ``BIGINT``, ``DECIMAL(12,2)``, ``STRUCT<a: INT>``.

    ``required``: it is NOT NULL.
    """

    name: str
    type: str
    required: bool = False

    @property
    def kind(self) -> str:
        """The type without its parameters: ``DECIMAL``, ``STRUCT``."""
        return re.split(r"[(<]", self.type, maxsplit=1)[0]

    @property
    def primitive(self) -> bool:
        return self.kind not in NESTED

    @property
    def floating(self) -> bool:
        return self.kind in ("FLOAT", "DOUBLE")

    @property
    def integral(self) -> bool:
        return self.kind in ("TINYINT", "SMALLINT", "INT", "BIGINT")


_DEPTH = 50
OURS = {"_kafka", "_tombstone"}
"""Columns that are ours; no other may have such a name."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Delta refuses these in column names; a dot or back-quote would need quoting everywhere.
_FORBIDDEN = re.compile(r"[ ,;{}()\t\n\r=.`]|[^\S ]")
_TOKEN = re.compile(
    r"\s+|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)|`(?P<name>[^`]*)`"
    r"|'(?P<text>(?:[^'\\]|\\.)*)'|(?P<mark>[<>(),:])|(?P<bad>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


def parse_columns(text: str) -> tuple[Column, ...]:
    """The columns in order. Raises ``Refused`` with all faults that the parser can separate."""
    parser = _Parser(text)
    columns = parser.columns()
    if parser.faults:
        raise Refused(*parser.faults)
    return columns


def read_columns(value: object) -> object:
    """Columns from their text, or columns as they are. Raises ``Refused`` for anything else."""
    if isinstance(value, str):
        return parse_columns(value)
    if isinstance(value, tuple) and value and all(isinstance(item, Column) for item in value):
        return value
    message = '{path} must be text like "id BIGINT, name STRING", not {value}'
    raise Refused(Fault(Kind.WRONG_TYPE, message))


class _Stop(Exception):
    """The parser cannot read on."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.faults: list[Fault] = []
        self._tokens = [*_tokens(text), _Token("end", "", len(text.rstrip()))]
        self._next = 0

    def columns(self) -> tuple[Column, ...]:
        columns: list[Column] = []
        try:
            if self._peek().kind == "end":
                self._stop("{path} is empty", "name at least one column")
            while True:
                columns.append(self._column({column.name.lower() for column in columns}))
                if self._peek().kind == "end":
                    break
                self._expect(",")
        except _Stop:
            pass
        return tuple(columns)

    def _column(self, taken: set[str]) -> Column:
        name = self._name(taken)
        if name.lower() in OURS or name.lower().startswith("_rm_"):
            message = "{path} names the column {found}, which is reserved"
            self._fault(message, kind=Kind.BAD_COLUMN, fix="give it another name", back=1)
        self._accept(":")
        type_, required = self._type(0), self._not_null()
        if self._accept("COMMENT") and self._take().kind != "text":
            self._stop("{path} needs a text in single quotes after COMMENT", back=1)
        return Column(name, type_, required)

    def _name(self, taken: set[str]) -> str:
        token = self._take()
        if token.kind not in ("word", "name"):
            self._stop("{path} needs the name of a column or field, not {found}", back=1)
        name, kind = token.text, Kind.BAD_COLUMN
        if name.lower() in taken:
            message = "{path} has the name {found} twice; upper and lower case are the same"
            self._fault(message, kind=kind, back=1)
        if not name or _FORBIDDEN.search(name):
            fix = "a name may not hold spaces, dots, back-quotes or any of ,;{}()="
            self._fault("{path} has the name {found}", kind=kind, fix=fix, back=1)
        return name

    def _type(self, depth: int) -> str:
        token = self._take()
        word = token.text.upper()
        if token.kind != "word":
            self._stop("{path} needs a type before {found}", f"types: {LISTING}", back=1)
        if depth > _DEPTH:
            self._stop("{path} is nested too deeply", back=1)
        word = SYNONYMS.get(word, word)
        if word == "DECIMAL":
            return self._decimal()
        if word in NESTED:
            return self._nested(word, depth)
        if word not in SIMPLE:
            meant = MEANT.get(word) or closest(word, TYPES)
            fix = "" if meant else f"types: {LISTING}"
            message = "{path} has the unknown type {found}"
            self._fault(message, suggestion=meant, fix=fix, back=1)
            while self._accept("("):
                self._skip_numbers()
        return word

    def _decimal(self) -> str:
        if not self._accept("("):
            return "DECIMAL(10,0)"
        start = self._next
        numbers = self._skip_numbers()
        precision, scale = (*numbers, 0)[:2] if numbers else (0, 0)
        if len(numbers) > 2 or not (1 <= precision <= 38 and scale <= precision):
            fix = "write DECIMAL(precision,scale): precision 1 to 38, scale at most the precision"
            message = "{path} has a DECIMAL that does not exist"
            self._fault(message, fix=fix, back=self._next - start + 2)
        return f"DECIMAL({precision},{scale})"

    def _skip_numbers(self) -> tuple[int, ...]:
        numbers = []
        while True:
            token = self._take()
            if token.kind != "number":
                self._stop("{path} needs a number, not {found}", back=1)
            numbers.append(int(token.text[:9]))
            if not self._accept(","):
                self._expect(")")
                return tuple(numbers)

    def _nested(self, word: str, depth: int) -> str:
        self._expect("<")
        if word == "ARRAY":
            inner = self._type(depth + 1)
        elif word == "MAP":
            if self._type(depth + 1) != "STRING":
                message = "{path} has a MAP whose key is not STRING"
                self._fault(message, fix="keys of JSON are text: write MAP<STRING, …>", back=1)
            self._expect(",")
            inner = f"STRING, {self._type(depth + 1)}"
        else:
            inner = self._fields(depth)
        self._expect(">")
        return f"{word}<{inner}>"

    def _fields(self, depth: int) -> str:
        fields: list[str] = []
        taken: set[str] = set()
        while not fields or self._accept(","):
            name = self._name(taken)
            taken.add(name.lower())
            self._accept(":")
            shown = name if _PLAIN.fullmatch(name) else f"`{name}`"
            fields.append(f"{shown}: {self._type(depth + 1)}")
            if self._not_null():
                fix = "remove it: it is checked of columns alone"
                self._fault("{path} says NOT NULL inside of a type", fix=fix, back=2)
        return ", ".join(fields)

    def _not_null(self) -> bool:
        found = self._accept("NOT")
        if found:
            self._expect("NULL")
        return found

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        if token.kind == "end":
            self._stop("{path} ends too early", "give the name and the type of each column")
        self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token.kind in ("word", "mark") and token.text.upper() == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._take()
            self._stop(f'{{path}} needs "{text}" before {{found}}', back=1)

    def _stop(self, message: str, fix: str = "", *, back: int = 0) -> NoReturn:
        self._fault(message, fix=fix, back=back)
        raise _Stop

    def _fault(
        self,
        message: str,
        *,
        kind: Kind = Kind.BAD_SCHEMA,
        suggestion: str = "",
        fix: str = "",
        back: int,
    ) -> None:
        token = self._tokens[self._next - back]
        self.faults.append(
            Fault(kind, message, token.text, suggestion=suggestion, fix=fix, offset=token.offset)
        )


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield _Token(match.lastgroup, match[match.lastgroup], match.start())
