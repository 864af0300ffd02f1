"""From a file to a ``Config``, or to all problems of the file at once.

What a section may hold is read from its model: keys, Spark's names for them, options that are
written in place but held together (``kafka.…``), and sections in it. A misspelt key is reported
and then taken for the key that was meant, so that its value is checked in the same run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

from pydantic import ValidationError

from rivermouth.config import models, problems, rules
from rivermouth.config.bucket import Bucket
from rivermouth.config.models import Config
from rivermouth.config.names import Catalog
from rivermouth.config.pipeline import Pipeline
from rivermouth.config.problems import (
    Fault,
    KeyPath,
    Kind,
    Problem,
    Refused,
    closest,
    listed,
    quoted,
)
from rivermouth.config.secret import Secret
from rivermouth.config.settings import (
    Model,
    Setting,
    keys_of,
    read_setting,
    settings,
    valid_settings,
)
from rivermouth.config.shared_rules import shared_faults
from rivermouth.config.sinks import SEND, SINKS, ledger_table
from rivermouth.config.user_modules import look_beside
from rivermouth.config.yaml_tree import Entry, Items, Leaf, Node, Section, plain, problem, read
from rivermouth.errors import ConfigError

_ONCE = "whether a run ends is not a setting: use rivermouth run --once"
_END = "a pipeline has no end: use rivermouth run --once, or rivermouth.read for ranges"
_EXPLAINED: Mapping[str, str] = {
    "availableNow": _ONCE,
    "processingTime": "write trigger: 10s in the pipeline or at the top",
    "subscribePattern": "write topics: {pattern: …}, which whole names match",
    "assign": "write topics: {assign: {a: [0, 1]}}, with the partitions of each topic",
    "startingTimestamp": 'write start: "2026-11-01T06:00:00Z", a time with its zone',
    "startingOffsetsByTimestamp": 'write start: {a: "2026-11-01T06:00:00Z"}, a time for each topic',
    "endingOffsets": _END,
    "endingTimestamp": _END,
    "endingOffsetsByTimestamp": _END,
    "spark.streaming.kafka.maxRatePerPartition": "write max_rate_per_partition: 1000",
    "includeHeaders": "write metadata: [headers], or forward_headers: true in a target that sends",
    "groupIdPrefix": "write kafka.group.id: NAME, a whole name",
    "kafkaConsumer.pollTimeoutMs": "write spark: {spark.network.timeout: 300s} at the top",
    "fetchOffset.numRetries": "write retry: {for: 30m} in the pipeline or at the top",
    "fetchOffset.retryIntervalMs": "write retry: {from: 1s} in the pipeline or at the top",
    "checkpointLocation": "the position is in the table; there is no checkpoint to keep",
    "options": "write each option in place, for example kafka.max.poll.records: 500",
}
"""What stands instead of a word of Spark, or of one that is often tried."""


def shape(root: Node) -> tuple[Node, list[tuple[KeyPath, Fault]]]:
    """The tree in the form of the models, and faults at paths of the tree as written."""
    shaper = _Shaper()
    return shaper.top(root), shaper.faults


class _Shaper:
    def __init__(self) -> None:
        self.faults: list[tuple[KeyPath, Fault]] = []

    def top(self, root: Node) -> Node:
        entry = self._section(Config, Entry(root.place, "", root), ())
        if not isinstance(entry.node, Section):
            return root
        entries = dict(entry.node.entries)
        for each in settings(Config):
            if each.members is not None and each.key in entries:
                entries[each.key] = self._members(each.members, entries[each.key], entries)
        return replace(entry.node, entries=entries)

    def _members(self, model: type[Model], entry: Entry, above: Mapping[str, Entry]) -> Entry:
        """Sections by name. A setting that one does not have it takes from ``above``, if it is
        sound there. A faulty one is so reported once, at its own place.
        """
        if not isinstance(entry.node, Section):
            return entry
        shared = [each for each in settings(model) if each.key in above]
        passed = {each.key: above[each.key] for each in shared if _is_sound(model, each, above)}
        inner: dict[str, Entry] = {}
        for name, each in entry.node.entries.items():
            member = self._section(model, each, (entry.word, name))
            if isinstance(member.node, Section):
                named = Entry(each.place, "", Leaf(each.place, name, name, name))
                entries = {**passed, **member.node.entries, "name": named}
                entries |= self._sent(name, entries, (entry.word, name))
                member = replace(member, node=replace(member.node, entries=entries))
            inner[name] = member
        return replace(entry, node=replace(entry.node, entries=inner))

    def _sent(self, name: str, pipeline: Mapping[str, Entry], path: KeyPath) -> dict[str, Entry]:
        """The target of a pipeline that sends: it names neither mode nor the ledger's table."""
        target = pipeline.get("target")
        if target is None or not isinstance(target.node, Section):
            return {}
        entries = target.node.entries
        sink = next((entries[each] for each in SINKS if each in entries), None)
        if sink is None:
            return {}
        if "table" in entries:
            message = f"{{path}} does not go with {sink.word}"
            fix = "a pipeline has one target: remove one of them"
            fault = Fault(Kind.SINK, message, fix=fix, at_key=True)
            self.faults.append(((*path, target.word, "table"), fault))
        given = pipeline.get("ledger")
        ledger = given.node.text if given and isinstance(given.node, Leaf) else name
        filled = {
            each: Entry(sink.place, "", Leaf(sink.place, text, text, text))
            for each, text in (("table", ledger_table(ledger)), ("mode", SEND))
        }
        mode = {"mode": entries["mode"]} if "mode" in entries else {}
        node = replace(target.node, entries={**entries, **filled, **mode})
        return {"target": replace(target, node=node)}

    def _section(self, model: type[Model], entry: Entry, path: KeyPath) -> Entry:
        node = entry.node
        if not isinstance(node, Section):
            return entry
        known = self._known(node, path, model)
        entries: dict[str, Entry] = {}
        for each in settings(model):
            if each.in_place is not None:
                prefix = each.in_place.prefix
                own = {key: known.pop(key) for key in [*known] if key.startswith(prefix)}
                if own or not prefix:
                    entries[each.key] = Entry(entry.place, "", _texts(Section(node.place, own)))
                continue
            found = self._named(each, known, path)
            if found is None:
                continue
            if each.section is not None:
                found = self._section(each.section, found, (*path, found.word))
            elif each.written and each.written.verbatim and isinstance(found.node, Section):
                found = replace(found, node=_texts(found.node))
            entries[each.key] = found
        return replace(entry, node=replace(node, entries=entries))

    def _named(self, setting: Setting, known: dict[str, Entry], path: KeyPath) -> Entry | None:
        """What stands under the key of a setting, or under Spark's name of it."""
        found = known.get(setting.key)
        spark = setting.spark
        other = known.get(spark.name) if spark else None
        if spark is None or other is None:
            return found
        if found is not None:
            message = f"{{path}} is another name of {setting.key}, which is given too"
            fault = Fault(Kind.TWO_NAMES, message, fix="remove one of them", at_key=True)
            self.faults.append(((*path, other.word), fault))
            return found
        return replace(other, node=_split(other.node)) if spark.listed else other

    def _known(self, node: Section, path: KeyPath, model: type[Model]) -> dict[str, Entry]:
        """What the model knows. A misspelt key is reported and taken for the one it resembles."""
        keys = keys_of(model)
        prefixes = tuple(each.in_place.prefix for each in settings(model) if each.in_place)
        known: dict[str, Entry] = {}
        strange: list[Entry] = []
        for key, entry in node.entries.items():
            if key in keys or key.startswith(prefixes):
                known[key] = entry
            else:
                strange.append(entry)
        for entry in strange:
            meant = "" if entry.word in _EXPLAINED else closest(entry.word, keys)
            fix = _EXPLAINED.get(entry.word, "" if meant else f"known keys: {listed(keys)}")
            message = f"unknown key {quoted(entry.word)} in {{path}}"
            fault = Fault(Kind.UNKNOWN_KEY, message, suggestion=meant, fix=fix)
            self.faults.append((path, replace(fault, place=entry.place)))
            if meant:
                known.setdefault(meant, entry)
        return known


def _is_sound(model: type[Model], setting: Setting, entries: Mapping[str, Entry]) -> bool:
    try:
        read_setting(model, setting.name, plain(entries[setting.key].node))
    except ValidationError:
        return False
    return True


def _texts(node: Section) -> Section:
    """The values as they are written: ``true`` and ``0500`` are text for Kafka and Delta."""
    entries = {}
    for key, entry in node.entries.items():
        leaf = entry.node
        if isinstance(leaf, Leaf) and not isinstance(leaf.value, (NoneType, Secret)):
            leaf = replace(leaf, value=leaf.text)
        entries[key] = replace(entry, node=leaf)
    return replace(node, entries=entries)


def _split(node: Node) -> Node:
    """Spark's ``subscribe: "a,b"`` as a list."""
    if not isinstance(node, Leaf) or node.broken or not isinstance(node.value, str):
        return node
    parts = [part.strip() for part in node.text.split(",")]
    return Items(node.place, tuple(replace(node, value=part, text=part) for part in parts))


Found = tuple[problems.KeyPath, Fault]

_EXPECTED = {
    "string_type": ("text", "put it in quotes"),
    "int_type": ("a whole number", "write it without quotes"),
    "tuple_type": ("a list", "write [a, b]"),
    "mapping_type": ("a mapping", ""),
    "dict_type": ("a mapping", ""),
    "model_type": ("a mapping", ""),
}


@dataclass(frozen=True)
class Unsaid:
    """A pipeline whose file names no ``schema``.

    ``settings`` are its sound ones by their paths, see ``valid_settings``. ``warehouse``,
    ``storage`` and ``registry`` are those of the file; None: there is none, or it is faulty.
    """

    settings: Mapping[str, Any]
    warehouse: Path | Bucket | Catalog | None
    storage: models.Storage | None
    registry: models.SchemaRegistry | None


ColumnsOf = Callable[[Unsaid], str | None]
"""Tells the columns of such a pipeline, as SQL; None: nobody can, it has to name them. Raises
``Refused``."""


def load(
    path: Path,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    columns_of: ColumnsOf = lambda unsaid: None,
) -> models.Config:
    """Read a configuration file. ``folder`` replaces the warehouse that the file names, and
    ``columns_of`` tells the columns of pipelines without ``schema``.

    Python finds the modules beside the file from then on, see ``beside``.
    Raises ``ConfigError`` with all problems, in the order of the file, and what ``columns_of``
    does. No problem shows a secret, or the value of a variable of the environment.
    """
    text = _text(path)
    written, found = read(text, environ)
    config = None
    if written is not None:
        shaped, faults = shape(written)
        found += _placed(written, faults)
        absolute = path.absolute()
        context, data = {"folder": absolute.parent}, plain(shaped)
        if isinstance(data, dict):
            data["path"] = absolute
            data |= {"warehouse": folder.absolute()} if folder is not None else {}
            found += _placed(shaped, _told(data, context, columns_of))
        try:
            config = models.Config.model_validate(data, context=context)
            found += _placed(shaped, look_beside(config))
        except ValidationError as error:
            found += _placed(shaped, [*_faults(error), *_between(data, context)])
    if found or config is None:
        raise ConfigError(tuple(item.render(str(path)) for item in sorted(set(found))))
    return config


def _text(path: Path) -> str:
    fault = ""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        fault = "there is no such file — check the path"
    except IsADirectoryError:
        fault = "this is a folder — name the file in it"
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        place = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        item = Problem(*place, Kind.FILE.code, "the file is not UTF-8 — save it as UTF-8")
        raise ConfigError((item.render(str(path)),)) from None
    except (OSError, ValueError) as error:
        fault = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError((Problem(0, 0, Kind.FILE.code, fault).render(str(path)),))


def _placed(root: Node, found: Iterable[Found]) -> list[Problem]:
    placed = (problem(root, path, fault) for path, fault in found)
    return [item for item in placed if item is not None]


def _faults(error: ValidationError) -> Iterator[Found]:
    """Our faults as they are, and pydantic's own in our words, without the values that it shows."""
    for detail in error.errors(include_url=False, include_input=False):
        path, kind = tuple(step for step in detail["loc"] if step != "[key]"), detail["type"]
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Refused):
            yield from ((path, fault) for fault in cause.faults)
        elif kind == "missing":
            fault = Fault(Kind.MISSING_KEY, f"{{path}} lacks the key {path[-1]}", at_key=True)
            yield path[:-1], fault
        elif kind in _EXPECTED:
            what, fix = _EXPECTED[kind]
            yield path, Fault(Kind.WRONG_TYPE, f"{{path}} must be {what}, not {{value}}", fix=fix)
        else:
            yield path, Fault(Kind.BAD_VALUE, f"{{path}} is refused: {kind}")


def _told(
    data: Mapping[str, Any], context: Mapping[str, Any], columns_of: ColumnsOf
) -> Iterator[Found]:
    """Adds the columns that pipelines do not name to ``data``, and says why it could not."""

    def sound(name: str) -> Any:
        with suppress(ValidationError):
            return read_setting(Config, name, data.get(name), context)

    pipelines = data.get("pipelines")
    for name, each in pipelines.items() if isinstance(pipelines, dict) else ():
        if not isinstance(each, dict) or "schema" in each:
            continue
        its = valid_settings(Pipeline, each, context=context)
        try:
            told = columns_of(Unsaid(its, *map(sound, ("warehouse", "storage", "schema_registry"))))
        except Refused as refused:
            yield from ((("pipelines", name), fault) for fault in refused.faults)
            continue
        if told is not None:
            each["schema"] = told


def _between(data: object, context: Mapping[str, Any]) -> Iterator[Found]:
    """What the rules say about the sound settings of a file that has faulty ones."""
    pipelines = data.get("pipelines") if isinstance(data, Mapping) else None
    found = {}
    for name, pipeline in pipelines.items() if isinstance(pipelines, Mapping) else ():
        found[name] = valid_settings(Pipeline, pipeline, context=context)
        for fault in rules.pipeline_faults(found[name]):
            yield ("pipelines", name), fault
    for fault in shared_faults(found):
        yield (), fault
