"""The exact parser of one document: bytes to names and raw values.

An object is a tuple of pairs (name, value) in their order, an array is a list, a number is a
``Number`` as it is spelt; text, ``True``, ``False`` and ``None`` are as in Python.
"""

from __future__ import annotations

import json
import re

from rivermouth.formats.strict_json.faults import Bad
from rivermouth.formats.strict_json.settings import DEPTH
from rivermouth.formats.strict_json.spelling import parse as step_by_step
from rivermouth.formats.strict_json.spelling import reason
from rivermouth.formats.strict_json.tokens import Number

_SPACE = " \t\n\r"
# A pair of halves, or any other escape; an escape of a half alone has a group.
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?:(u[dD][89a-fA-F])|.)",
    re.DOTALL,
)
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse(name: str) -> None:
    raise Bad(f"the value is not JSON: {name} is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=Number, parse_int=Number, parse_constant=_refuse
)
_QUICK = json.JSONDecoder(parse_float=str, parse_int=str)


def read(value: bytes, spelt: bool) -> tuple[object, ...]:
    """The members of the only object of the document. Raises Bad for all that is not one.

    If ``spelt``, objects and arrays know how they are spelt.
    """
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise Bad(f"the value is not UTF-8 at byte {fault.start + 1}") from None
    text = text.strip(_SPACE)
    if not text.startswith("{"):
        mark = "; it begins with a byte order mark" if text.startswith("\ufeff") else ""
        raise Bad(f"the value is not one JSON object{mark}")
    found = _parsed(text, spelt)
    if _MAYBE_HALF.search(text) and any(each[1] for each in _ESCAPES.finditer(text)):
        raise Bad("the value is not JSON: half of a surrogate pair stands alone")
    return found


def _parsed(text: str, spelt: bool) -> tuple[object, ...]:
    marks = text.count("{") + text.count("[")
    if marks <= (1 if spelt else DEPTH):
        try:
            found, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError as fault:
            raise Bad(reason(fault.msg, fault.pos)) from None
        except RecursionError:  # the stack of the caller is deep already
            return step_by_step(text)
        if end != len(text):
            raise Bad(reason("something stands after the object", end))
        members: tuple[object, ...] = found
        return members
    return step_by_step(text)


def is_one_document(text: str) -> bool:
    """Whether the text is JSON without anything around it, as far as a quick look tells."""
    try:
        return _QUICK.raw_decode(text)[1] == len(text)
    except (ValueError, RecursionError):
        return False
