"""From the words of the file to the fields of the models, in the located tree.

What a section may hold is read from its model: keys, Spark's names for them, options that are
written in place but held together (``kafka.…``), and sections in it. A misspelt key is reported
and then taken for the key that was meant, so that its value is checked in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import NoneType

from pydantic import ValidationError

from rivermouth.config.located import Entry, Items, Leaf, Node, Section, plain
from rivermouth.config.models import Config
from rivermouth.config.problems import Fault, Kind, Path, closest, listed, quoted
from rivermouth.config.secret import Secret
from rivermouth.config.sending import SEND, SINKS, ledger_table
from rivermouth.config.sound import read
from rivermouth.config.written import Model, Setting, keys_of, settings

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


def shape(root: Node) -> tuple[Node, list[tuple[Path, Fault]]]:
    """The tree in the form of the models, and faults at paths of the tree as written."""
    shaper = _Shaper()
    return shaper.top(root), shaper.faults


class _Shaper:
    def __init__(self) -> None:
        self.faults: list[tuple[Path, Fault]] = []

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

    def _sent(self, name: str, pipeline: Mapping[str, Entry], path: Path) -> dict[str, Entry]:
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

    def _section(self, model: type[Model], entry: Entry, path: Path) -> Entry:
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

    def _named(self, setting: Setting, known: dict[str, Entry], path: Path) -> Entry | None:
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

    def _known(self, node: Section, path: Path, model: type[Model]) -> dict[str, Entry]:
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
        read(model, setting.name, plain(entries[setting.key].node))
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
