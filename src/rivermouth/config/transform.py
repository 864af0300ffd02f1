"""A pipeline's own code in the batch: ``transform``, ``select`` and ``target.schema``.

Only their form is read here. The function is imported when the pipeline runs, and Spark reads the
expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rivermouth.config.columns import Column, read_columns
from rivermouth.config.problems import Fault, KeyPath, Kind, Refused
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import Schema, Written
from rivermouth.config.value_types import Flag

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_FUNCTION = rf"{_NAME}(\.{_NAME})*:{_NAME}(\.{_NAME})*"
_PIECE = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|[()\[\],]|[^'\"`()\[\],]+|.", re.S
)
_CLOSES = {")": "(", "]": "["}
_TEXT: Schema = {"type": "string"}


def read_function(value: object) -> str:
    """The reference of a function, ``package.module:function``. Raises ``Refused``."""
    if not isinstance(value, str):
        message = "{path} must be text like shop.rows:clean, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message))
    if not re.fullmatch(_FUNCTION, value, re.ASCII):
        message = "{path} is not the name of a function: {value}"
        fix = "write package.module:function, for example shop.rows:clean"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=fix))
    return value


def read_select(value: object) -> str:
    """A list of SQL expressions as text. Raises ``Refused`` where it cannot be taken apart."""
    if not isinstance(value, str):
        message = '{path} must be text like "order_id, upper(country) AS country", not {value}'
        raise Refused(Fault(Kind.WRONG_TYPE, message))
    expressions(value)
    return value


def expressions(text: str) -> tuple[str, ...]:
    """The expressions of a ``select``: separated by commas outside of brackets and quotes.

    Raises ``Refused`` for an empty one, and for brackets and quotes that do not close.
    """
    found, opened = [""], list[str]()
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in _CLOSES and (not opened or opened.pop() != _CLOSES[piece]):
            raise _refused(f'{{path}} has a "{piece}" that closes nothing', match.start())
        if piece in "'\"`":
            raise _refused(f"{{path}} has a {piece} that is not closed", match.start())
        if piece in "([":
            opened.append(piece)
        if piece == "," and not opened:
            found.append("")
        else:
            found[-1] += piece
    if opened:
        raise _refused(f'{{path}} has a "{opened[-1]}" that is not closed', len(text))
    if not all(each.strip() for each in found):
        raise _refused("{path} has an empty expression", 0)
    return tuple(each.strip() for each in found)


def _refused(message: str, offset: int) -> Refused:
    fix = "write SQL expressions with commas between them"
    return Refused(Fault(Kind.TRANSFORM, message, fix=fix, offset=offset))


def at_most_one(transform: str | None, select: str | None) -> Iterator[Fault]:
    """A pipeline has one of the two, or none."""
    if transform is not None and select is not None:
        message = "{path} and transform are both given"
        fix = "remove one of them: the function can select, too"
        yield Fault(Kind.TRANSFORM, message, path=("select",), fix=fix, at_key=True)


def tells_columns(
    transform: str | None, select: str | None, columns: tuple[Column, ...] | None
) -> Iterator[Fault]:
    """The columns of the table are told where, and only where, they are not those of ``schema``."""
    name = "select" if transform is None else "transform"
    if (transform or select) is not None and columns is None:
        message = "{path} lacks the key schema, which is needed with " + name
        fix = "write the columns of its rows there, as SQL text; _kafka is added"
        yield Fault(Kind.TRANSFORM, message, path=("target",), fix=fix)
    if transform is None and select is None and columns is not None:
        message = "{path} has no meaning without transform or select"
        fix = "the rows have the columns of the pipeline's own schema: remove it"
        path: KeyPath = ("target", "schema")
        yield Fault(Kind.TRANSFORM, message, path=path, fix=fix, at_key=True)


def fits_the_mode(transform: str | None, select: str | None, mode: str) -> Iterator[Fault]:
    """``verify`` cannot prove the newest row of a key if it does not know the key's columns."""
    if (transform or select) is not None and not SHAPES.by_name[mode].transforms:
        name = "select" if transform is None else "transform"
        message = f"{{path}} does not go with mode: {mode}, which could not be verified"
        modes = " or ".join(modes_of_own_code())
        fix = f"write mode: {modes}, and read that table by a query or a view"
        yield Fault(Kind.TRANSFORM, message, path=(name,), fix=fix, at_key=True)


def explodes_rows(
    transform: str | None, select: str | None, mode: str, explode: bool
) -> Iterator[Fault]:
    """Several rows of one record are made by own code, in a table whose rows can be counted."""
    if not explode:
        return
    shape, path = SHAPES.by_name[mode], ("target", "explode")
    if shape.sends:
        message = "{path} does not go with a target that is no table"
        fix = "rm-id tells each record that is sent: remove it, and send an ARRAY"
        yield Fault(Kind.TRANSFORM, message, path=path, fix=fix, at_key=True)
    elif not shape.transforms:
        message = f"{{path}} does not go with mode: {mode}, which could not be verified"
        fix = f"write mode: {' or '.join(modes_of_own_code())}, or remove it"
        yield Fault(Kind.TRANSFORM, message, path=path, fix=fix, at_key=True)
    elif (transform or select) is None:
        message = "{path} has no meaning without transform or select"
        fix = "without them each record has one row: remove it"
        yield Fault(Kind.TRANSFORM, message, path=path, fix=fix, at_key=True)


def modes_of_own_code() -> tuple[str, ...]:
    """The modes of a table whose rows own code may make."""
    shapes = SHAPES.by_name.items()
    return tuple(name for name, each in shapes if each.transforms and not each.sends)


Transform = Annotated[
    Annotated[
        str, BeforeValidator(read_function), WithJsonSchema({**_TEXT, "pattern": f"^{_FUNCTION}$"})
    ]
    | None,
    Field(
        description="A function of yours, called as `function(df, batch)` with the good rows of"
        " each batch; it returns the rows to write or to send, see [transform](transform.md).",
        examples=["shop.rows:clean"],
    ),
    Written(word="text"),
]
Select = Annotated[
    Annotated[str, BeforeValidator(read_select)] | None,
    Field(
        description="SQL expressions over the columns of `schema` and `_kafka`, with commas"
        " between them: the columns of the rows, see [transform](transform.md).",
        examples=["order_id, upper(country) AS country, price * 2 AS twice"],
    ),
    Written(word="text"),
]
Explode = Annotated[
    Flag,
    Field(
        description="Only with `transform` or `select`: whether one record may have any number of"
        " rows, see [transform](transform.md#several-rows-of-one-record). Without it a record has"
        " one row at most.",
    ),
]


def _read_made(value: object) -> object:
    """Columns that own code makes. Raises ``Refused``, also for NOT NULL: nobody checks that."""
    columns = read_columns(value)
    assert isinstance(columns, tuple)
    for each in columns:
        if each.required:
            message = f"{{path}} says NOT NULL of {each.name}, which is not checked"
            fix = "remove it, and let the code see to it"
            raise Refused(Fault(Kind.BAD_SCHEMA, message, fix=fix))
    return columns


MadeColumns = Annotated[
    Annotated[tuple[Column, ...], BeforeValidator(_read_made), WithJsonSchema(_TEXT)] | None,
    Field(
        validation_alias="schema",
        description="The columns of the table, or of the rows that are sent, as SQL text, if"
        " `transform` or `select` makes them."
        " Required with these, refused without.",
        examples=["order_id BIGINT, country STRING, twice DECIMAL(13,2)"],
    ),
    Written(word="text"),
]
