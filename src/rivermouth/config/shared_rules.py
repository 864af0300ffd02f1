"""Rules over two pipelines: of one table, one ledger, one consumer group.

A rule looks at the settings that are sound, so that a problem in one setting does not hide a
problem between others. All paths lead down from the top of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rivermouth.config.encoding import Framing, framing_of
from rivermouth.config.formats import FORMATS
from rivermouth.config.problems import Fault, KeyPath, Kind, listed
from rivermouth.config.properties import not_replacing, understood
from rivermouth.config.registry import SHAPES
from rivermouth.config.settings import Given
from rivermouth.config.topics import Topics
from rivermouth.config.totals import why_spark
from rivermouth.config.values import Commit

AGREED = {
    "target.table": "spelling of the name",
    "target.mode": "mode",
    "target.keys": "keys",
    "target.order_by": "order_by",
    "schema": "schema",
    "target.schema": "target.schema",
    "source.metadata": "source.metadata",
}
"""What pipelines of one table must agree on, in words for people."""


def shared_faults(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    """The faults between pipelines of one table, ledger or group."""
    yield from _of_tables(pipelines)
    yield from _of_ledgers(pipelines)
    yield from _of_groups(pipelines)


def without_registry(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    """The faults of pipelines whose records name schemas, where nothing says where these are."""
    asked = ("source.format", "source.framing", "source.schema_file", "source.key")
    for name, pipeline in pipelines.items():
        if not all(each in pipeline for each in asked):
            continue
        known, framing, file, key = (pipeline[each] for each in asked)
        named = FORMATS.by_name[known].schema_text is not None
        if named and framing_of(known, framing, file) is not Framing.NONE:
            message = "{path} is {value}, whose records name their schema by a number"
            fix = "add a section schema_registry:, or name a schema_file"
            path: KeyPath = ("pipelines", name, "source", "format")
            yield Fault(Kind.BAD_VALUE, message, path=path, fix=fix)
        elif key is not None and FORMATS.keys[key].framed:
            message = "{path} is {value}, whose keys name their schema by a number"
            path = ("pipelines", name, "source", "key")
            yield Fault(Kind.BAD_VALUE, message, path=path, fix="add a section schema_registry:")


def in_bucket(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    """What asks for commits of Spark, which makes none in an object store.

    Of two drivers that it lets write one version there, one loses its commit.
    """
    for name, pipeline in pipelines.items():
        path: KeyPath = ("pipelines", name, "target")
        for step, message in _by_spark(pipeline):
            message = f"{{path}} {message}, and Spark commits nothing in an object store"
            yield Fault(Kind.BAD_VALUE, message, path=(*path, *step), fix="see docs/stores.md")


def _by_spark(pipeline: Given) -> Iterator[tuple[KeyPath, str]]:
    if pipeline.get("target.commit") is Commit.SPARK:
        yield ("commit",), "is {value}"
    if pipeline.get("target.cluster_by"):
        yield ("cluster_by",), "is for OPTIMIZE by Spark"
    properties = pipeline.get("target.properties") or {}
    mode = SHAPES.by_name.get(pipeline.get("target.mode", ""))
    refused = [*not_replacing(properties)] if mode is not None and mode.keyed else []
    for each, value in properties.items():
        if each.lower().startswith("delta.") and not understood(each, value):
            yield ("properties", each), "is not understood with this value"
        elif each in refused:
            yield ("properties", each), "lets no rows be replaced by files"
    columns = {each.name: each for each in pipeline.get("schema") or ()}
    known = [e for e in pipeline.get("target.metrics") or () if e.column in (None, *columns)]
    if mode is not None and mode.totals and (why := why_spark(known, [*columns.values()])):
        yield ("metrics",), f"asks for Spark: {why}"


def _of_tables(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    readers: dict[str, dict[str, Topics]] = {}
    for name, pipeline in pipelines.items():
        if "target.table" not in pipeline:
            continue
        table = str(pipeline["target.table"]).lower()
        path: KeyPath = ("pipelines", name, "target", "table")
        other = first.setdefault(table, name)
        differs = _differences(pipeline, pipelines[other])
        if differs:
            message = f"{{path}} is also the table of pipeline {other}, with another"
            fix = "use the same in both, or write two tables"
            yield Fault(Kind.SHARED_TABLE, f"{message} {differs}", path=path, fix=fix)
        elif other != name and _is_of_totals(pipeline):
            message = f"{{path}} is also the table of pipeline {other}, but totals have one"
            fix = "let one pipeline read all of the topics, or write two tables"
            yield Fault(Kind.SHARED_TABLE, f"{message} pipeline", path=path, fix=fix)
        fix = "each record would be written twice: read it in one pipeline only"
        for path, reader, message in _both(name, pipeline, readers.setdefault(table, {})):
            message = f"{message} pipeline {reader} reads into this table"
            yield Fault(Kind.SHARED_TABLE, message, path=path, fix=fix)


def _of_groups(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    groups: dict[str, dict[str, Topics]] = {}
    for name, pipeline in pipelines.items():
        group = pipeline.get("source.mirror_group")
        if group is None:
            continue
        fix = "a group has one offset of a partition: write another mirror_group"
        for path, other, message in _both(name, pipeline, groups.setdefault(group, {})):
            message = f"{message} pipeline {other} mirrors into this group"
            yield Fault(Kind.SHARED_GROUP, message, path=path, fix=fix)


def _both(
    name: str, pipeline: Given, others: dict[str, Topics]
) -> Iterator[tuple[KeyPath, str, str]]:
    """The topics that ``others`` may read, too: where, which pipeline, and words to go on with.

    The pipeline is one of the others from then on.
    """
    if "source.topics" not in pipeline:
        return
    topics: Topics = pipeline["source.topics"]
    path: KeyPath = ("pipelines", name, "source", "topics")
    for index, topic in enumerate(topics):
        readers = {other: each for other, each in others.items() if each.take(topic)}
        if topic not in topics.assigned and readers:
            yield (*path, index), next(iter(readers)), "{path} is {value}, which"
        for at, number in enumerate(topics.assigned.get(topic, ())):
            both = (other for other, each in readers.items() if each.has(topic, number))
            if reader := next(both, None):
                yield (*path, "assign", topic, at), reader, "{path} is {value}, which"
    for other, each in others.items() if topics.pattern else ():
        if each.pattern:
            yield (*path, "pattern"), other, "{path} may match a topic that the pattern of"
        for topic in filter(topics.take, each):
            yield (*path, "pattern"), other, f"{{path}} matches {topic}, which"
    others[name] = topics


def _of_ledgers(pipelines: Mapping[str, Given]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for name, pipeline in pipelines.items():
        ledger = pipeline.get("ledger")
        if ledger is None:
            continue
        path: KeyPath = ("pipelines", name, "ledger")
        if ledger in pipelines and ledger != name:
            message = "{path} is {value}, the name of another pipeline"
            fix = "a name that is in a ledger stays with it: give the other one another name"
            yield Fault(Kind.SHARED_LEDGER, message, path=path, fix=fix)
        elif first.setdefault(ledger, name) != name:
            message = f"{{path}} is {{value}}, the ledger of pipeline {first[ledger]}"
            fix = "a ledger belongs to one pipeline: remove one of the two"
            yield Fault(Kind.SHARED_LEDGER, message, path=path, fix=fix)


def _is_of_totals(pipeline: Given) -> bool:
    mode = pipeline.get("target.mode")
    return mode is not None and SHAPES.by_name[mode].totals


def _differences(one: Given, other: Given) -> str:
    both = ((path, words) for path, words in AGREED.items() if path in one and path in other)
    return listed(words for path, words in both if one[path] != other[path])
