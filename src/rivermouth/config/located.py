"""YAML as a tree in which each key and value knows its line and column.

``reader`` makes it from the nodes of ruamel.yaml (YAML 1.2). The values that ruamel itself loads
would not do. They know the place of a key and of a value (``.lc``), but not the characters of a
scalar, which tell where inside of a text a fault is, and what ``0500`` and ``true`` are as text.
They have no place at all for a value that a merge key brings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rivermouth.config.problems import Fault, Path, Problem, printable, quoted, sentence
from rivermouth.config.secret import MASK

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(frozen=True)
class Leaf:
    """A scalar. ``text`` is its text, ``raw`` the characters in the file, ``value`` its meaning.

    ``broken``: it could not be read, and that is already reported.
    """

    place: Place
    value: object
    text: str
    raw: str
    from_env: bool = False
    secret: bool = False
    broken: bool = False

    @property
    def hidden(self) -> bool:
        """Whether its text may not appear in a message."""
        return self.from_env or self.secret

    @property
    def shown(self) -> str:
        """For messages: never a secret, and never the value of a variable of the environment."""
        if self.value is None:
            return "empty"
        if self.secret:
            return MASK
        if self.from_env:
            return printable(self.raw)
        return quoted(self.text) if isinstance(self.value, str) else printable(self.text)

    def at(self, offset: int) -> Place:
        """The place of a character of ``text``, or of the whole scalar if that cannot be told."""
        body = re.match(r"[|>][^\n]*\n|['\"]|", self.raw)
        index = body.end() if body else 0
        for char in self.text[: offset + 1]:
            if char.isspace():
                continue
            while index < len(self.raw) and self.raw[index].isspace():
                index += 1
            if not self.raw.startswith(char, index):
                return self.place
            index += 1
        before = self.raw[: max(index - 1, 0)]
        line, column = self.place
        if "\n" in before:
            return line + before.count("\n"), len(before) - before.rfind("\n")
        return line, column + len(before)


@dataclass(frozen=True)
class Items:
    """A YAML sequence."""

    place: Place
    items: tuple[Node, ...]
    shown = "a list"


@dataclass(frozen=True)
class Entry:
    """A key and its value; ``word`` is the key as written, empty if no key was written."""

    place: Place
    word: str
    node: Node


@dataclass(frozen=True)
class Section:
    """A YAML mapping."""

    place: Place
    entries: Mapping[str, Entry]
    shown = "a mapping"


Node = Leaf | Items | Section


def plain(node: Node) -> object:
    """The tree as plain values: dict, tuple, and what the leaves mean."""
    if isinstance(node, Section):
        return {key: plain(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return tuple(plain(item) for item in node.items)
    return node.value


@dataclass(frozen=True)
class Spot:
    """What stands at a path, or at the deepest part of it that exists."""

    node: Node
    key_place: Place
    path: str
    exact: bool


def spot(root: Node, path: Path) -> Spot:
    """Follow a path down. Steps that do not exist are in the words too, unless they come from
    inside a text that may not be shown.
    """
    node, key_place, words, exact = root, root.place, "", True
    for step in path:
        word = str(step)
        if isinstance(node, Section) and word in node.entries:
            entry = node.entries[word]
            node, key_place, word = entry.node, entry.place, entry.word
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            key_place = node.place
        else:
            exact = False
            if isinstance(node, Leaf) and node.hidden:
                break
        if isinstance(step, int):
            words += f"[{step}]"
        elif word:
            words += f".{printable(word)}" if words else printable(word)
    return Spot(node, key_place, words, exact)


def _hidden(node: Node) -> bool:
    if isinstance(node, Section):
        return any(_hidden(entry.node) for entry in node.entries.values())
    if isinstance(node, Items):
        return any(_hidden(item) for item in node.items)
    return node.hidden


def problem(root: Node, path: Path, fault: Fault) -> Problem | None:
    """The fault of a value at its place; ``None`` if the value is already reported as broken."""
    where = spot(root, path + fault.path)
    node = where.node
    place = fault.place or (where.key_place if fault.at_key else node.place)
    found, suggestion = quoted(fault.found), fault.suggestion
    if isinstance(node, Leaf):
        if node.broken:
            return None
        if node.hidden and not (fault.at_key and where.exact):
            found, suggestion = node.shown, ""
        elif fault.offset is not None:
            place = node.at(fault.offset)
    if fault.quotes and _hidden(spot(root, path + fault.quotes).node):
        fault, suggestion = replace(fault, fix=""), ""
    text = sentence(fault, where.path, node.shown, found, suggestion)
    return Problem(*place, fault.kind.code, text)
