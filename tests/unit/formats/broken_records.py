"""Breaks records: bytes that are flipped, lost, doubled, put in; whole documents of other kinds."""

from __future__ import annotations

import random

_PUT_IN = (
    *b"""
    null NaN Infinity -Inf }{ }null{ [ ] { } 1e400 1e39 .5 01 + - // /**/ ' , : 0 true e5 .
    "a":1, "a":null, {} [] [null] }1{ }[]null{ #
""".split(),
    *(b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80", b"} null {", b"}\n{"),
    *(b"}\nnull\n{", b'"', b"\\", b"\n", b"\r", b"\t", b" ", b"\\u0000", b"\\ud800"),
    *(b"\\udc00", b"\\ud83d\\ude00", b"\\u12", b"\\x", b"\x01", b"\x7f"),
)
_WHOLE = (
    *b"""
    null [] [null] {} { } 1 true NaN {}null{} {}{} {}{}{}{} {}[null]{}
""".split(),
    *(b" null ", b" ", b"\n", b'"x"', b"{} null {}", b"{}\0", b"{\0}", b"{}\0}", b"\0"),
    *(b"{}\n{}", b"{} }", b"{}1 null{}", b"{}NaN null{}", b"{}\xef\xbb\xbf{}"),
    *(b"\xef\xbb\xbf{}", b"{}\xff{}", b'{"q":' + b"[" * 499 + b"]" * 499 + b"}"),
    *(b'{"q":' + b"[" * 500 + b"]" * 500 + b"}",),
    *(b'{"q":' + b'{"q":' * 600 + b"1" + b"}" * 601, b'{"q":"' + b"[" * 2000 + b'"}'),
    *(b'{"q":[' + b"{}," * 600 + b"{}]}", b"[" * 5000, b'{"q":' * 5000 + b"}" * 5000),
    *(b'{"q":"' + b"x" * 3000 + b'\xff"}',),
)


def broken(dice: random.Random, value: bytes) -> bytes:
    """The record with one to three changes, or another one."""
    if dice.random() < 0.1:
        return dice.choice(_WHOLE)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        value = _changed(dice, value)
    return value


def _changed(dice: random.Random, value: bytes) -> bytes:
    at = dice.randrange(len(value) + 1)
    end = min(len(value), at + dice.choice((1, 1, 2, 5)))
    way = dice.randrange(6)
    if way == 0:
        return value[:at] + value[end:]
    if way == 1:
        return value[:end] + value[at:]
    if way == 2:
        return value[:at]
    if way == 3 and at < len(value):
        return value[:at] + bytes([value[at] ^ 1 << dice.randrange(8)]) + value[at + 1 :]
    return value[:at] + dice.choice(_PUT_IN) + value[dice.choice((at, end)) :]


def damaged(value: bytes, dice: random.Random) -> bytes:
    """The value with a bit flipped, cut, extended, or replaced by junk."""
    at = dice.randrange(len(value)) if value else 0
    kind = dice.randrange(4)
    if kind == 0 and value:
        return value[:at] + bytes([value[at] ^ (1 << dice.randrange(8))]) + value[at + 1 :]
    if kind == 1:
        return value[:at]
    if kind == 2:
        return value + dice.randbytes(dice.randint(1, 9))
    return dice.randbytes(dice.randint(1, 40))
