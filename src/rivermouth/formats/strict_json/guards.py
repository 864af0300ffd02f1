"""Which records the compiled parser may see.

The compiled parser says only where it stopped first, or nothing but that a number did not fit. One
pass of this pattern finds every record that may stop it: what is not JSON, a value of another type,
a number out of range, a name that comes twice. Names stand in the order in which a few records of
the chunk have them. A record of another form may still be good: the exact way decides.

A text that fits and begins and ends with braces is one document of the names and values that the
pattern says, or the compiled parser refuses it: the pattern takes ``{`` also for a comma, ``[``
likewise, and the closing marks for each other.

That parser takes more than JSON, and a document ``null`` crashes it. So a record goes to it only
if it is known to hold nothing of that kind. What is refused here may still be good: the exact way
decides. All checks look at a whole chunk at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.chunk import (
    ASCII,
    Chunk,
    beyond_ascii,
    bytes_of,
    counts,
    having,
    mask_of,
    maybe_strange,
)
from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.scalars import Bad
from rivermouth.formats.strict_json.types import DEPTH

Members = tuple[tuple[str, object], ...]

_SAMPLES = 16
_LETTERS = 1_000_000
_LONGEST = 50_000
_NAMES = 500
_ITEMS = 100
"""What is not looked at beyond these does not cost much, however large it is."""
_ANY_SPACE = r"[ \t\r\n]*"
_HEX = "[0-9a-fA-F]"
# Halves of a surrogate pair come as a pair only.
_ESCAPED = (
    rf'\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}'
    rf"|[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}))"
)
_TEXT = rf'"(?:[^"\\\x00-\x1f]|{_ESCAPED})*"'
# The parser refuses what is infinite as a DOUBLE.
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE](?:-[0-9]+|\+?[0-9]{1,2}))?"
_PLAIN = rf"(?:{_TEXT}|{_NUMBER}|true|false|null)"
_DEEP = 6
"""Fields that no column takes have no more objects and arrays in each other than this."""


def common_form(texts: pa.StringArray, row: pa.StructType) -> str | None:
    """The pattern; None if no record tells, or if it would be slow. ``row`` is of the types that
    the parser reads.
    """
    step = max(1, len(texts) // _SAMPLES)
    samples: list[Members] = []
    letters = 0
    for text in texts[::step][:_SAMPLES].to_pylist():
        letters += len(text)
        if letters <= _LETTERS and (members := _members(text)):
            samples.append(members)
    form = rf"\A{_object(row, samples)}\z"
    return form if samples and len(form) <= _LONGEST else None


def fitting(texts: pa.StringArray, form: str) -> np.ndarray:
    """Which texts have that form. They are UTF-8, and begin and end with braces."""
    as_bytes = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    try:
        # As bytes: that is faster, and what is UTF-8 matches as well.
        found = pc.match_substring_regex(texts.cast(as_bytes), form)
    except pa.ArrowInvalid:  # the pattern is too large
        return np.zeros(len(texts), dtype=bool)
    return mask_of(found)


def _members(text: str) -> Members:
    try:
        return cast(Members, read(text.encode(), spelt=False))
    except Bad:
        return ()


def form_of(kind: pa.DataType, samples: Iterable[object] = ()) -> str:
    """The pattern of values that the compiled parser surely reads as the type."""
    if pa.types.is_struct(kind):
        return _object(kind, [cast(Members, each) for each in samples if isinstance(each, tuple)])
    if pa.types.is_list(kind):
        inner = [item for each in samples if isinstance(each, list) for item in each][:_ITEMS]
        item = rf"(?:null|{form_of(kind.value_type, inner)})"
        return rf"(?:\[{_ANY_SPACE})?(?:[\[,]{_ANY_SPACE}{item}{_ANY_SPACE})*\]"
    if pa.types.is_integer(kind):
        return _whole(kind.bit_width)
    if pa.types.is_decimal(kind):
        fraction = rf"(?:\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
        return rf'"?-?{_up_to(kind.precision - kind.scale)}{fraction}"?'
    if pa.types.is_floating(kind):
        return _NUMBER
    return "(?:true|false)" if pa.types.is_boolean(kind) else _TEXT


def _object(kind: pa.StructType, samples: list[Members]) -> str:
    names = _in_order(samples)
    if not names:
        return _anything(1)
    fields = {each.name: each.type for each in kind}
    values: dict[str, list[object]] = {each: [] for each in names}
    for sample in samples:
        for name, value in sample:
            if name in values:
                values[name].append(value)
    members = (_member(name, fields.get(name), values[name]) for name in names)
    return rf"(?:\{{{_ANY_SPACE})?{''.join(members)}\}}"


def _member(name: str, kind: pa.DataType | None, samples: list[object]) -> str:
    spelt = re.escape(json.dumps(name, ensure_ascii=False))
    form = f"(?:null|{form_of(kind, samples)})" if kind else _anything(_depth(samples))
    return rf"(?:[{{,]{_ANY_SPACE}{spelt}{_ANY_SPACE}:{_ANY_SPACE}{form}{_ANY_SPACE})?"


def _whole(bits: int) -> str:
    """Whole numbers of so many bits."""
    most = str(2 ** (bits - 1) - 1)
    # As long as the largest: the same to some digit, and there a smaller one.
    smaller = (
        f"{most[:place]}[{int(not place)}-{int(digit) - 1}][0-9]{{{len(most) - 1 - place}}}"
        for place, digit in enumerate(most)
        if int(digit) > int(not place)
    )
    shorter = _up_to(len(most) - 1)
    return f"(?:-?(?:{'|'.join((shorter, most, *smaller))})|-{2 ** (bits - 1)})"


def _up_to(digits: int) -> str:
    return f"(?:0|[1-9][0-9]{{0,{digits - 1}}})" if digits else "0"


def _anything(depth: int) -> str:
    """Any value with at most so many objects and arrays in each other."""
    form = _PLAIN
    for _ in range(depth):
        item = rf"(?:{_TEXT}{_ANY_SPACE}:{_ANY_SPACE})?{form}{_ANY_SPACE}"
        form = rf"(?:{_PLAIN}|(?:[{{\[]{_ANY_SPACE})?(?:[{{\[,]{_ANY_SPACE}{item})*[\]}}])"
    return form


def _depth(values: list[object]) -> int:
    """How many objects and arrays these values have in each other, as far as it matters."""
    depth, nested = 0, [each for each in values if isinstance(each, list | tuple)]
    while nested and depth < _DEEP:
        depth += 1
        items = [
            item[1] if isinstance(each, tuple) else item
            for each in nested
            for item in each[:_ITEMS]
        ]
        nested = [each for each in items if isinstance(each, list | tuple)]
    return depth


def _in_order(samples: Iterable[Members]) -> list[str]:
    """The names, each where a record has it after the one before it.

    Not more than ``_NAMES``: where each record has names of its own, no form would be theirs.
    """
    names: list[str] = []
    known: set[str] = set()
    for sample in samples:
        place = 0
        for name, _ in sample:
            if name not in known:
                if len(known) == _NAMES:
                    return names
                known.add(name)
                names.insert(place, name)
            place = names.index(name) + 1
    return names


_SPACE = " \t\r\n"
_AFTER_OBJECT = r"\}[ \t\r\n]*"
# The parser ends at a NUL as if the chunk ended; null between objects crashes it; and it takes NaN
# and Infinity. In text these are harmless, but a record that has them is rare.
_STRANGE = rf"\x00|{_AFTER_OBJECT}n|[:\[,][ \t\r\n]*-?(?:NaN|Inf)"
_AT_ONCE = 64
_FEW = 0.05
"""With so few bytes beyond ASCII, for each value, those that have one are looked at one by one."""
_TWO_OBJECTS = rf"{_AFTER_OBJECT}\{{"


def as_text(values: pa.Array) -> pa.StringArray:
    """The values, which are binary without nulls, as text. What is not UTF-8 is empty text."""
    data, starts = bytes_of(values)
    codes = np.frombuffer(data, np.uint8)
    if codes.max(initial=0) <= ASCII:
        return _unchecked(values)
    try:
        return values.cast(_text_of(values.type))
    except pa.ArrowInvalid:
        valid = pa.array(_valid(values, codes, starts))
        return _unchecked(pc.if_else(valid, values, pa.scalar(b"", values.type)))


def _text_of(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_large_binary(kind) else pa.string()


def _unchecked(values: pa.Array) -> pa.StringArray:
    """Values that are UTF-8, as text."""
    kind, buffers = _text_of(values.type), values.buffers()
    return pa.Array.from_buffers(kind, len(values), buffers, offset=values.offset)


def _valid(values: pa.Array, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which values are UTF-8. There is one that is not."""
    valid = np.ones(len(values), dtype=bool)
    others = beyond_ascii(codes, int(_FEW * len(values)))
    if others is not None:
        few = having(others, starts)
        valid[few] = [_is_utf8(each) for each in values.filter(pa.array(few)).to_pylist()]
        return valid
    for start in range(0, len(values), _AT_ONCE):
        some = values.slice(start, _AT_ONCE)
        try:
            some.cast(pa.string())
        except pa.ArrowInvalid:
            valid[start : start + _AT_ONCE] = [_is_utf8(each) for each in some.to_pylist()]
    return valid


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def framed(texts: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """The texts without space around them, and which of them begin and end with braces."""
    mask = _framed(texts)
    if mask.all():
        return texts, mask
    texts = pc.ascii_trim(texts, _SPACE)
    return texts, _framed(texts)


def safe(texts: pa.StringArray, chunk: Chunk) -> np.ndarray:
    """Which of the framed texts the compiled parser may see. ``chunk`` has them joined."""
    checks = [np.ones(len(texts), dtype=bool)]
    if maybe_strange(chunk):
        checks.append(~mask_of(pc.match_substring_regex(texts, _STRANGE)))
    if np.diff(chunk.starts).max(initial=0) > 2 * DEPTH:
        checks.append(counts(chunk, b"{") + counts(chunk, b"[") <= DEPTH)
    passed: np.ndarray = np.logical_and.reduce(checks)
    return passed


def holds_two_objects(texts: pa.StringArray) -> np.ndarray:
    """Which texts may hold two documents. A text that begins and ends with braces, and of which
    this says False, is one document or none.
    """
    return mask_of(pc.match_substring_regex(texts, _TWO_OBJECTS))


def _framed(texts: pa.StringArray) -> np.ndarray:
    return mask_of(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")))
