"""What a document is made of, where Python has no type that keeps all of it."""

from __future__ import annotations


class Number(str):
    """A JSON number, as it is spelt."""

    __slots__ = ()


class Object(tuple[object, ...]):
    """The members of an object, pairs of name and value, and how it is spelt."""

    spelt: str


class Array(list[object]):
    """The elements of an array, and how it is spelt."""

    __slots__ = ("spelt",)
    spelt: str
