"""YAML text as a tree in which each key and value knows its line and column.

``reader`` makes it from the nodes of ruamel.yaml (YAML 1.2). The values that ruamel itself loads
would not do. They know the place of a key and of a value (``.lc``), but not the characters of a
scalar, which tell where inside of a text a fault is, and what ``0500`` and ``true`` are as text.
They have no place at all for a value that a merge key brings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from rivermouth.config.problems import (
    Fault,
    KeyPath,
    Kind,
    Problem,
    Refused,
    printable,
    quoted,
    sentence,
)
from rivermouth.config.secret import MASK, EnvText, Secret, sensitive, substitute

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


def spot(root: Node, path: KeyPath) -> Spot:
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


def problem(root: Node, path: KeyPath, fault: Fault) -> Problem | None:
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


MAY_REFER = (("kafka",), ("schema_registry",), ("storage",), ("alerts",))
"""The sections whose values may be secrets of a workspace."""
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "false": False}
_MOST_NODES = 100_000
_DEEPEST = 60


def read(text: str, environ: Mapping[str, str]) -> tuple[Node | None, list[Problem]]:
    """The tree, or ``None`` if there is none, and the problems found so far."""
    yaml = YAML(typ="rt")
    yaml.composer.warn_double_anchors = False  # YAML allows it: the last one counts
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        return None, [_syntax(error, text)]
    except Exception as error:  # on odd text the library also raises KeyError and others
        return None, [_unreadable(error, text)]
    if root is None:
        fix = "start from the example in docs/configuration.md"
        return None, [Problem(1, 1, Kind.FILE.code, f"the file is empty — {fix}")]
    reader = _Reader(text, environ)
    try:
        return reader.node(root, ()), reader.problems
    except _TooLarge as error:
        return None, [*reader.problems, error.problem]


class _TooLarge(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.text)


class _Reader:
    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._environ = environ
        self._nodes = 0

    def node(self, node: YamlNode, path: KeyPath) -> Node:
        """Aliases are followed each time, so that a bomb of aliases reaches the limit."""
        self._nodes += 1
        if self._nodes > _MOST_NODES or len(path) > _DEEPEST:
            message = "the file is nested too deeply or repeats aliases without end"
            raise _TooLarge(Problem(*_place(node), Kind.SYNTAX.code, message))
        tag = str(node.tag)
        if isinstance(node, ScalarNode) and tag.startswith(_TAG):
            return self._leaf(node, tag.removeprefix(_TAG), path)
        if isinstance(node, SequenceNode) and tag == f"{_TAG}seq":
            items = (self.node(item, (*path, index)) for index, item in enumerate(node.value))
            return Items(_place(node), tuple(items))
        if isinstance(node, MappingNode) and tag == f"{_TAG}map":
            return self._section(node, path)
        fault = Fault(Kind.SYNTAX, "{path} has a YAML tag", fix="remove the !tag")
        return self._broken(node, path, fault)

    def _leaf(self, node: ScalarNode, tag: str, path: KeyPath) -> Leaf:
        text, place = str(node.value), _place(node)
        if node.style == ">":
            text = text.replace("\a", "")  # so ruamel marks where it folded
        raw = self._text[node.start_mark.index : node.end_mark.index]
        secret = any(isinstance(step, str) and sensitive(step) for step in path)
        in_client = path[:1] in MAY_REFER
        try:
            replaced = substitute(text, self._environ, secret=secret, may_refer=in_client)
        except Refused as refused:
            return self._broken(node, path, *refused.faults)
        if isinstance(replaced, Secret):
            return Leaf(place, replaced, "", text, secret=True)
        if isinstance(replaced, EnvText):
            return Leaf(place, replaced, replaced, text, from_env=True, secret=secret)
        value: object = replaced
        if tag == "null":
            value = None
        elif tag == "bool":
            value = _BOOLEANS.get(text.lower(), text)
        elif tag == "int" and re.fullmatch(r"[-+]?[0-9]{1,30}", text, re.ASCII):
            value = int(text)
        elif tag == "float":
            value = _float(text)
        elif tag not in ("str", "int", "timestamp"):
            fault = Fault(Kind.SYNTAX, "{path} has a YAML tag", fix="remove the !!tag")
            return self._broken(node, path, fault)
        return Leaf(place, value, replaced, raw, secret=secret)

    def _section(self, node: MappingNode, path: KeyPath) -> Section:
        own: dict[str, Entry] = {}
        merged: list[Section] = []
        for key, value in node.value:
            place = _place(key)
            if not isinstance(key, ScalarNode):
                self._report(place, path, Fault(Kind.SYNTAX, "{path} has a key that is not text"))
            elif str(key.tag) == f"{_TAG}merge":
                merged += self._merge(value, path)
            elif key.value in own:
                line, column = own[key.value].place
                message = f"key {quoted(key.value)} is given twice in {{path}}"
                fix = f"the first is at {line}:{column}"
                self._report(place, path, Fault(Kind.DUPLICATE_KEY, message, fix=fix))
            else:
                word = str(key.value)
                own[word] = Entry(place, word, self.node(value, (*path, word)))
        for section in merged:
            own = {**section.entries, **own}
        return Section(_place(node), own)

    def _merge(self, value: YamlNode, path: KeyPath) -> list[Section]:
        """The sections that ``<<`` merges, the strongest first. Keys of the mapping win."""
        parts = value.value if isinstance(value, SequenceNode) else [value]
        sections = []
        for part in parts:
            section = self.node(part, (*path, "<<"))
            if isinstance(section, Section):
                sections.append(section)
            else:
                fault = Fault(Kind.SYNTAX, "{path} merges something that is not a mapping")
                self._report(_place(part), path, fault)
        return sections

    def _broken(self, node: YamlNode, path: KeyPath, *faults: Fault) -> Leaf:
        for fault in faults:
            self._report(_place(node), path, fault)
        return Leaf(_place(node), "", "", "", broken=True)

    def _report(self, place: Place, path: KeyPath, fault: Fault) -> None:
        words = spot(Section(place, {}), path).path
        text = sentence(fault, words, "", quoted(fault.found), "")
        self.problems.append(Problem(*place, fault.kind.code, text))


def _place(node: YamlNode) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _float(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _syntax(error: MarkedYAMLError, text: str) -> Problem:
    """ruamel's words, without what it quotes from the file: that may be a secret."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    words = re.sub(r" (['\"])(.*?)\1", _short, error.problem or "").removeprefix("but ")
    lines = text.splitlines()
    if line < len(lines) and "${" in lines[line]:
        words += " — write quotes around ${…} inside { } or [ ]"
    return Problem(line + 1, column + 1, Kind.SYNTAX.code, f"not valid YAML: {words}")


def _short(match: re.Match[str]) -> str:
    return match[0] if len(match[2]) < 3 else ""


def _unreadable(error: Exception, text: str) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(1, 1, Kind.SYNTAX.code, "not valid YAML: it is nested too deeply")
    position = getattr(error, "position", None)
    if not isinstance(position, int):
        return Problem(1, 1, Kind.SYNTAX.code, "not valid YAML")
    before = text[:position]
    place = before.count("\n") + 1, position - before.rfind("\n")
    words = "not valid YAML: a character that YAML does not allow"
    return Problem(*place, Kind.SYNTAX.code, words)
