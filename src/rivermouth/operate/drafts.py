"""Pipelines as ``init`` writes them: a configuration file with comments."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rivermouth.config.names import PIPELINE, QUARANTINE
from rivermouth.schemas.inferred import Field, sql_of

_PLAIN = re.compile(r"(?:\./|/|[A-Za-z_])[\w./:@-]*", re.ASCII)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_WIDTH = 96
_LONGEST = 63


@dataclass(frozen=True)
class Connection:
    """What a file says beside its pipelines: options of the two clients, and where tables are."""

    kafka: Mapping[str, str]
    registry: str = ""
    warehouse: str = "./lake"


@dataclass(frozen=True)
class Draft:
    """A pipeline of one topic. ``source`` are settings beside the topic, and ``order`` columns that
    put its records in order.

    ``notes`` are about columns; ``evidence`` says what was seen. Both are comments in the file.
    """

    topic: str
    source: Mapping[str, Any]
    columns: tuple[Field, ...]
    each: str = ""
    mode: str = "append"
    keys: tuple[str, ...] = ()
    order: tuple[Field, ...] = ()
    notes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the table."""
        return (*self.columns, *self.order)

    @property
    def schema(self) -> str:
        """The columns as ``schema`` has them."""
        return sql_of(self.fields)

    @property
    def placed(self) -> dict[str, Any]:
        """The columns that are not in the field of their name, or not written as usual."""
        found = dict[str, Any]()
        for each in self.fields:
            texts = [text.replace("${", "$${") for text in each.paths]  # no references
            paths = {"from": texts[0] if len(texts) == 1 else texts}
            its = (paths if each.paths else {}) | ({"as": each.wire} if each.wire else {})
            found |= {each.name: its} if its else {}
        return found

    @property
    def target(self) -> dict[str, Any]:
        """What is written, without the table."""
        if self.mode == "append":
            return {}
        order = {"order_by": [each.name for each in self.order]} if self.order else {}
        return {"mode": self.mode, "keys": [*self.keys], **order}


def names_of(topics: Iterable[str]) -> dict[str, str]:
    """The name of a pipeline for each topic, each another one."""
    found = dict[str, str]()
    for topic in topics:
        plain = re.sub(r"[^a-z0-9]+", "_", topic.lower()).strip("_") or "topic"
        first = plain if plain[0].isalpha() else f"topic_{plain}"
        first = f"{first}_records" if first.endswith(QUARANTINE) else first
        name, number = first[:_LONGEST], 2
        while name in found.values():
            name, number = f"{first[: _LONGEST - 4]}_{number}", number + 1
        assert re.fullmatch(PIPELINE, name)
        found[topic] = name
    return found


def file_text(connection: Connection, drafts: Sequence[Draft], head: Sequence[str] = ()) -> str:
    """The file. ``head`` are lines of comments at its top."""
    lines = [f"# {each}" for each in head]
    lines += ["version: 1", "kafka:"]
    lines += [f"  {flow(key)}: {flow(value)}" for key, value in connection.kafka.items()]
    if connection.registry:
        lines += ["schema_registry:", f"  url: {flow(connection.registry)}"]
    lines += [f"warehouse: {flow(connection.warehouse)}", "pipelines:"]
    names = names_of(each.topic for each in drafts)
    for each in drafts:
        lines += _pipeline(names[each.topic], each)
    return "\n".join(lines) + "\n"


def _pipeline(name: str, draft: Draft) -> list[str]:
    source = {"topics": [draft.topic], **draft.source}
    schema = "silver" if draft.keys else "bronze"
    lines = [f"  {name}:", *_comments(draft.evidence)]
    lines += _section("source", source)
    lines += [*_comments(draft.notes), "    schema: |"]
    lines += [f"      {each}" for each in draft.schema.splitlines()]
    if draft.placed:
        lines += ["    columns:"]
        lines += [f"      {flow(column)}: {flow(its)}" for column, its in draft.placed.items()]
    lines += [f"    each: {flow(draft.each)}"] if draft.each else []
    return [*lines, *_section("target", {"table": f"{schema}.{name}", **draft.target})]


def _comments(texts: Iterable[str]) -> list[str]:
    return [line for each in texts for line in _wrapped(each)]


def _wrapped(text: str) -> list[str]:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return textwrap.wrap(
        plain,
        _WIDTH,
        initial_indent="    # ",
        subsequent_indent="    #   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _section(name: str, settings: Mapping[str, Any]) -> list[str]:
    """In one line, or in one for each setting where that is too long."""
    line = f"    {name}: {flow(settings)}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"    {name}:", *(f"      {key}: {flow(its)}" for key, its in settings.items())]


def flow(value: Any) -> str:
    """A value in YAML, in one line. No reference is read in it but ``${env:…}`` alone."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{flow(key)}: {flow(its)}' for key, its in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.endswith(":"):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
