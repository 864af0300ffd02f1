"""YAML as a tree in which every key and value knows its line and column.

The tree is composed by ruamel.yaml (YAML 1.2); anchors, aliases and merge keys are resolved
here, and ``${…}`` references in values are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.config.problems import Fault, Path, Problem, printable, quoted, sentence
from rivermouth.config.secret import MASK

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(frozen=True)
class Leaf:
    """A scalar. ``text`` is its text, ``raw`` the characters in the file, ``value`` its meaning.

    ``broken``: it could not be read, which is reported already.
    """

    place: Place
    value: object
    text: str
    raw: str
    from_env: bool = False
    secret: bool = False
    broken: bool = False

    @property
    def shown(self) -> str:
        """For messages: never a secret, and never what a variable of the environment holds."""
        if self.secret:
            return MASK
        if self.from_env:
            return printable(self.raw)
        if self.value is None:
            return "empty"
        return quoted(self.text) if isinstance(self.value, str) else printable(self.text)

    def at(self, offset: int) -> Place:
        """The place of a character of ``text``, or of the scalar where that is not plain."""
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


def spot(root: Node, path: Path) -> Spot:
    """Follow a path down; steps that do not exist still appear in the words."""
    node, key_place, words = root, root.place, ""
    for step in path:
        word = str(step)
        if isinstance(node, Section) and word in node.entries:
            entry = node.entries[word]
            node, key_place, word = entry.node, entry.place, entry.word
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            key_place = node.place
        if isinstance(step, int):
            words += f"[{step}]"
        elif word:
            words += f".{printable(word)}" if words else printable(word)
    return Spot(node, key_place, words)


def problem(root: Node, path: Path, fault: Fault) -> Problem | None:
    """The fault of a value at its place; ``None`` if the value was found broken before."""
    where = spot(root, path + fault.path)
    node = where.node
    place = fault.place or (where.key_place if fault.at_key else node.place)
    found, suggestion = quoted(fault.found), fault.suggestion
    if isinstance(node, Leaf):
        if node.broken:
            return None
        if (node.from_env or node.secret) and not fault.at_key:
            found, suggestion = node.shown, ""
        elif fault.offset is not None:
            place = node.at(fault.offset)
    text = sentence(fault, where.path, node.shown, found, suggestion)
    return Problem(*place, fault.kind.code, text)
