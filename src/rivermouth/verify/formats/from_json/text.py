"""The text of a JSON document to values, as Spark's parser (Jackson) reads it.

More is accepted than JSON allows: names and text in single quotes, ``NaN``, ``Infinity`` and
``INF`` with a sign, bytes that are not UTF-8, whatever follows the first object. Some JSON is
refused: nesting of more than 1,000, numbers of more than 1,000 digits, names of more than 50,000
characters.

Values: ``Pairs`` for an object, since a name may come twice; list, str, int, bool, None; ``Number``
for a number with a point or an exponent, and for ``NaN`` and the like.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from rivermouth.verify.formats.reader import CannotTell, Undecodable

_DEPTH, _DIGITS, _NAME, _BUFFER = 1_000, 1_000, 50_000, 2_000
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{1001}")
_LONG_NAME = re.compile(rb'[^"]{50001}')
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\\\x00-\x1f]*")}
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE][+-]?([0-9]+))?")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


class Number(str):
    """A JSON number with a point or an exponent, as it is spelled; also ``NaN``, ``-INF``, …"""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """A JSON object: names and values in their order, also those whose name comes again."""

    __slots__ = ()


_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    **{name: Number(name) for name in ("NaN", "Infinity")},
    **{sign + name: Number(sign + name) for sign in "+-" for name in ("INF", "Infinity")},
}
_WORD = re.compile("|".join(map(re.escape, sorted(_WORDS, key=len, reverse=True))))


def _odd(word: str) -> NoReturn:
    raise ValueError(word)


# In C: many times faster than the scanner below, which reads what JSON does not allow.
_FAST = json.JSONDecoder(parse_float=Number, parse_constant=_odd, object_pairs_hook=Pairs)


def text_of(value: bytes) -> str:
    """The bytes as text; Java puts one replacement character for a surrogate, Python three."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xef\xbf\xbd", value).decode("utf-8", "replace")


def parse_object(value: bytes, *, binary: bool = False) -> Pairs:
    """The JSON object at the start of ``value``; what follows it is not looked at.

    Raises Undecodable where there is none. ``binary``: a column is BINARY; Spark then skips some
    control characters that it refuses elsewhere, and CannotTell is raised where it meets one.
    """
    text = text_of(value).lstrip(" \t\r\n")
    if not text.startswith("{"):
        raise Undecodable("not a JSON object")
    if _is_plain(value):
        try:
            found: Pairs = _FAST.raw_decode(text)[0]
            return found
        except (ValueError, RecursionError):
            pass
    return _Scanner(text, binary=binary).object()


def parse_text(text: str) -> Any:
    """The one JSON value that ``text`` consists of. Raises ValueError."""
    found, end = _FAST.raw_decode(text)
    if end != len(text):
        raise ValueError(f"text after the value: {text[end:]!r}")
    return found


def _is_plain(value: bytes) -> bool:
    """Whether no limit of Spark's parser can be reached."""
    if len(value) <= min(_DEPTH, _DIGITS):
        return True
    if value.count(b"{") + value.count(b"[") > _DEPTH:
        return False
    return not _LONG_NUMBER.search(value) and (len(value) <= _NAME or not _LONG_NAME.search(value))


class _Scanner:
    """Reads one object character by character, without recursion."""

    def __init__(self, text: str, *, binary: bool) -> None:
        self._text = text
        self._binary = binary
        self._at = 0

    def object(self) -> Pairs:
        """The object at the start of the text. Raises Undecodable and CannotTell."""
        self._at = 1
        root = Pairs()
        stack: list[list[Any]] = [root]
        fresh = True
        while stack:
            into = stack[-1]
            named = isinstance(into, Pairs)
            char = self._next()
            if char == ("}" if named else "]"):
                stack.pop()
                fresh = False
                continue
            if not fresh:
                self._expect(",", char)
                char = self._next()
            name = self._name(char) if named else None
            char = self._next() if named else char
            value = self._value(char)
            into.append((name, value) if named else value)
            fresh = isinstance(value, list)
            if fresh:
                stack.append(value)
                if len(stack) > _DEPTH:
                    raise Undecodable(f"nested more than {_DEPTH:,} deep")
        return root

    def _next(self) -> str:
        """The next character that is no white space; it is taken."""
        found = _SPACE.match(self._text, self._at)
        self._at = (found.end() if found else self._at) + 1
        if self._at > len(self._text):
            raise Undecodable("not JSON: it ends too early")
        return self._text[self._at - 1]

    def _expect(self, wanted: str, found: str) -> None:
        if found != wanted:
            raise Undecodable(f"not JSON: {found!r} where {wanted!r} is expected")

    def _name(self, char: str) -> str:
        if char not in _PLAIN:
            raise Undecodable(f"not JSON: a name that begins with {char!r}")
        name = self._string(char)
        if len(name) > _NAME:
            raise Undecodable(f"a name of more than {_NAME:,} characters")
        self._expect(":", self._next())
        return name

    def _value(self, char: str) -> Any:
        """The value that begins with ``char``; an empty one for an object or array."""
        if char in "{[":
            return Pairs() if char == "{" else []
        if char in _PLAIN:
            return self._string(char)
        word = _WORD.match(self._text, self._at - 1)
        if word is not None:
            self._at = word.end()
            return _WORDS[word[0]]
        number = _NUMBER.match(self._text, self._at - 1)
        if number is None:
            raise Undecodable(f"not JSON: a value that begins with {char!r}")
        self._at = number.end()
        self._check_length(*number.groups())
        whole = number[2] is None and number[3] is None
        return int(number[0]) if whole else Number(number[0])

    def _check_length(self, whole: str, part: str | None, exponent: str | None) -> None:
        digits = len(whole) + len(part or "") + len(exponent or "")
        if digits == _DIGITS + 1 and (part is None) is not (exponent is None):
            # Spark's parser counts one less for a part that is missing, if the number begins with
            # zero or does not fit into the buffer of which it has read a part.
            if whole == "0":
                return
            if len(self._text) > _BUFFER:
                raise CannotTell(f"a number of {digits:,} digits")
        if digits > _DIGITS:
            raise Undecodable(f"a number of more than {_DIGITS:,} digits")

    def _string(self, quote: str) -> str:
        """The text up to the closing quote, which is taken."""
        parts: list[str] = []
        while True:
            found = _PLAIN[quote].match(self._text, self._at)
            plain = found[0] if found else ""
            parts.append(plain)
            self._at += len(plain) + 1
            if self._at > len(self._text):
                raise Undecodable("not JSON: a text without an end")
            char = self._text[self._at - 1]
            if char == quote:
                # Two escapes may make one character.
                whole = "".join(parts).encode("utf-16-le", "surrogatepass")
                return whole.decode("utf-16-le", "surrogatepass")
            if char != "\\":
                refusal = CannotTell if self._binary else Undecodable
                raise refusal("a control character inside of a text")
            parts.append(self._escape())

    def _escape(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        code = _HEX.match(self._text, self._at) if char == "u" else None
        if code is None:
            raise Undecodable(f"not JSON: the escape \\{char}")
        self._at = code.end()
        return chr(int(code[0], 16))
