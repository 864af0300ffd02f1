"""From the words of the file to the fields of the models, in the located tree.

Here stand the known keys, the aliases that Spark users bring, and what is written in place
but held together in a model (Kafka options, table properties). A misspelt key is reported
and then taken for the one that was meant, so that its value is checked in the same go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import NoneType

from rivermouth.config.located import Entry, Items, Leaf, Node, Section, plain
from rivermouth.config.problems import Fault, Kind, Path, Refused, closest, listed, quoted
from rivermouth.config.secret import Secret
from rivermouth.config.values import read_duration

TOP_KEYS = ("version", "kafka", "warehouse", "trigger", "pipelines")
PIPELINE_KEYS = ("source", "schema", "target", "trigger")
SOURCE_KEYS = ("topics", "format", "start", "key", "max_offsets_per_trigger", "on_data_loss")
TARGET_KEYS = ("table", "mode", "keys", "order_by", "properties")
ALIASES: Mapping[str, str] = {
    "subscribe": "topics",
    "startingOffsets": "start",
    "maxOffsetsPerTrigger": "max_offsets_per_trigger",
}
FAIL_ON_DATA_LOSS = "failOnDataLoss"
_ONCE = "whether a run ends is said when it starts: rivermouth run --once"
_LIST_TOPICS = "list the topics under topics: [a, b]"
_EXPLAINED: Mapping[str, str] = {
    "availableNow": _ONCE,
    "processingTime": "write trigger: 10s in the pipeline or at the top",
    "subscribePattern": _LIST_TOPICS,
    "assign": _LIST_TOPICS,
    "endingOffsets": _ONCE,
    "checkpointLocation": "the position lies in the table; there is no checkpoint to keep",
    "options": "write each option in place, for example kafka.max.poll.records: 500",
}


def shape(root: Node) -> tuple[Node, list[tuple[Path, Fault]]]:
    """The tree in the form of the models, and faults at paths of the tree as written."""
    shaper = _Shaper()
    return shaper.top(root), shaper.faults


class _Shaper:
    def __init__(self) -> None:
        self.faults: list[tuple[Path, Fault]] = []

    def top(self, root: Node) -> Node:
        if not isinstance(root, Section):
            return root
        entries = self._known(root, (), TOP_KEYS)
        if "kafka" in entries:
            kafka = entries["kafka"]
            if isinstance(kafka.node, Section):
                options = Entry(kafka.place, "", _texts(kafka.node))
                node = replace(kafka.node, entries={"options": options})
                entries["kafka"] = replace(kafka, node=node)
        pipelines = entries.get("pipelines")
        if pipelines is not None and isinstance(pipelines.node, Section):
            trigger = _if_sound(entries.get("trigger"))
            inner = {
                name: replace(entry, node=self._pipeline(entry, (pipelines.word, name), trigger))
                for name, entry in pipelines.node.entries.items()
            }
            node = replace(pipelines.node, entries=inner)
            entries["pipelines"] = replace(pipelines, node=node)
        return replace(root, entries=entries)

    def _pipeline(self, entry: Entry, path: Path, trigger: Entry | None) -> Node:
        node = entry.node
        if not isinstance(node, Section):
            return node
        entries = self._known(node, path, PIPELINE_KEYS)
        name = str(path[-1])
        entries["name"] = Entry(entry.place, "", Leaf(entry.place, name, name, name))
        if "schema" in entries:
            entries["columns"] = entries.pop("schema")
        if trigger is not None:
            entries.setdefault("trigger", trigger)
        for key, reshape in (("source", self._source), ("target", self._target)):
            part = entries.get(key)
            if part is not None and isinstance(part.node, Section):
                entries[key] = replace(part, node=reshape(part, part.node, (*path, part.word)))
        return replace(node, entries=entries)

    def _source(self, entry: Entry, node: Section, path: Path) -> Section:
        entries = self._known(node, path, (*SOURCE_KEYS, *ALIASES, FAIL_ON_DATA_LOSS), "kafka.")
        options = {key: entries.pop(key) for key in list(entries) if key.startswith("kafka.")}
        if options:
            entries["options"] = Entry(entry.place, "", _texts(Section(node.place, options)))
        self._fail_on_data_loss(entries.pop(FAIL_ON_DATA_LOSS, None), path)
        for alias, name in ALIASES.items():
            given = entries.pop(alias, None)
            if given is None:
                continue
            if name in entries:
                message = f"{{path}} is another name of {name}, which is given too"
                fault = Fault(Kind.TWO_NAMES, message, fix="remove one of them", at_key=True)
                self.faults.append(((*path, given.word), fault))
                continue
            split = alias == "subscribe" and isinstance(given.node, Leaf)
            entries[name] = replace(given, node=_split(given.node)) if split else given
        return replace(node, entries=entries)

    def _target(self, entry: Entry, node: Section, path: Path) -> Section:
        entries = self._known(node, path, TARGET_KEYS)
        properties = entries.get("properties")
        if properties is not None and isinstance(properties.node, Section):
            entries["properties"] = replace(properties, node=_texts(properties.node))
        return replace(node, entries=entries)

    def _fail_on_data_loss(self, entry: Entry | None, path: Path) -> None:
        """Spark's option is always true here; saying so is accepted and changes nothing."""
        if entry is None:
            return
        text = entry.node.text.lower() if isinstance(entry.node, Leaf) else ""
        if text == "false":
            message = "{path} cannot be false: a loss is never silent"
            fault = Fault(Kind.NOT_YOURS, message, fix="say on_data_loss: record")
        elif text != "true":
            fault = Fault(Kind.WRONG_TYPE, "{path} must be true, not {value}", fix="remove it")
        else:
            return
        self.faults.append(((*path, entry.word), fault))

    def _known(
        self, node: Section, path: Path, keys: tuple[str, ...], prefix: str | None = None
    ) -> dict[str, Entry]:
        known: dict[str, Entry] = {}
        strange: list[Entry] = []
        for key, entry in node.entries.items():
            if key in keys or (prefix and key.startswith(prefix)):
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


def _if_sound(trigger: Entry | None) -> Entry | None:
    """The default of all pipelines, unless it is faulty: then it is reported once, at the top."""
    try:
        if trigger is not None:
            read_duration(plain(trigger.node))
    except Refused:
        return None
    return trigger


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
