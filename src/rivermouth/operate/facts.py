"""What is known of a pipeline from outside, while a run may commit to its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from rivermouth.config import Config, Pipeline, Secrets, Topics, unresolved
from rivermouth.config.platforms import LOCAL
from rivermouth.config.registry import FILES, LANDINGS, SEND
from rivermouth.errors import (
    LedgerBroken,
    LogUnreadable,
    RivermouthError,
    SetupError,
    SourceError,
    as_ours,
)
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import AskKafka, assess_by, facts_of, with_topics
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_is_over
from rivermouth.protocol.ways import (
    ELSEWHERE,
    UNPINNED,
    Definition,
    Way,
    replaced,
    way_into,
    way_of,
)
from rivermouth.spark.tables import pins_threads
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import ENGINE, DeltaLog
from rivermouth.warehouse.lake.offsets import ledger_of
from rivermouth.warehouse.ledger import Others, read_ledger, read_on, with_others
from rivermouth.warehouse.ports import LedgerLog, LedgerStore

TIMEOUT_S = 5.0
"""So long may a question to the broker take where an operator waits."""

_NOTHING = KafkaFacts("", {}, {})
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What Kafka says for a pipeline, which has the topics that its pattern matches now."""

    pipeline: Pipeline
    facts: KafkaFacts | RivermouthError


def connected(config: Config, secrets: Secrets) -> Kafka:
    """The configured broker. Raises SourceError or SetupError for options that no client takes."""
    return Kafka(config.kafka.revealed(secrets), TIMEOUT_S)


def answers(
    pipelines: Iterable[Pipeline],
    kafka: AskKafka | RivermouthError,
    newest: Mapping[str, Entry | None],
) -> dict[str, Answer]:
    """Kafka's answer for each pipeline, by its name. ``newest`` are their entries, read before.

    An error in place of ``kafka`` is the answer for all of them.
    """
    if isinstance(kafka, RivermouthError):
        return {each.name: Answer(each, kafka) for each in pipelines}
    known = [*pipelines]
    names: frozenset[str] | RivermouthError = frozenset()
    if any(each.source.topics.pattern for each in known):
        names = or_fault(kafka.names)
    matched = {each.name: _matched(each, kafka, newest.get(each.name), names) for each in known}
    whole = [each.pipeline for each in matched.values() if isinstance(each.facts, KafkaFacts)]
    facts = _facts(whole, kafka)
    return {
        name: replace(each, facts=facts[name]) if name in facts else each
        for name, each in matched.items()
    }


def or_fault(question: Callable[[], T]) -> T | RivermouthError:
    """The answer of a broker, or why there is none."""
    try:
        return question()
    except (SourceError, SetupError) as fault:
        return fault


def _matched(
    pipeline: Pipeline,
    kafka: AskKafka,
    newest: Entry | None,
    names: frozenset[str] | RivermouthError,
) -> Answer:
    if isinstance(names, RivermouthError):
        # A broker that is away is not asked once more for each of the others.
        away = names.code == "RM301" or bool(pipeline.source.topics.pattern)
        return Answer(pipeline, names if away else _NOTHING)
    found = or_fault(lambda: with_topics(kafka, pipeline, newest, names))
    if isinstance(found, RivermouthError):
        return Answer(pipeline, found)
    return Answer(found, _NOTHING)


def _facts(
    pipelines: Iterable[Pipeline], kafka: AskKafka
) -> dict[str, KafkaFacts | RivermouthError]:
    wanted = {each.name: each.source.topics for each in pipelines}
    if not wanted:
        return {}
    every = sorted({topic for topics in wanted.values() for topic in topics})
    facts = or_fault(lambda: kafka.facts(every))
    if isinstance(facts, KafkaFacts):
        return {name: facts.of(topics) for name, topics in wanted.items()}
    if facts.code == "RM301" or len(wanted) == 1:
        return dict.fromkeys(wanted, facts)
    return {name: _facts_of(topics, kafka) for name, topics in wanted.items()}


def _facts_of(topics: Topics, kafka: AskKafka) -> KafkaFacts | RivermouthError:
    return or_fault(lambda: kafka.facts(topics).of(topics))


Judge = Callable[[LedgerSnapshot], Assessment]
"""What a run would do with a ledger, see ``assess``; asks Kafka, or not."""
_TIMES = 5
"""How often it is read on while runs commit."""


def look(
    store: LedgerStore, pipeline: Pipeline, ledger: LedgerSnapshot, judge: Judge
) -> Assessment:
    """What a run would do now; ``ledger`` is as it was read first.

    A run may commit while we read: then offsets table and ``txn`` are ahead of what was read of
    the log. So a halt is believed only where nothing was committed meanwhile; else what was
    committed is read, too. Raises what ``judge`` does, LogUnreadable, LedgerBroken, and
    OffsetsUnreadable.
    """
    found = judge(ledger)
    for _ in range(_TIMES):
        newer = read_on(store, pipeline, found.ledger) if found.halt is not None else None
        if newer is None:
            return found
        found = judge(newer)
    return found


def ledger_or_fault(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot | RivermouthError:
    """The ledger of a pipeline, or why it cannot be read."""
    try:
        return read_ledger(store, pipeline)
    except Exception as fault:
        return as_ours(fault, pipeline.name)


def newest_of(ledgers: Mapping[str, LedgerSnapshot | RivermouthError]) -> dict[str, Entry | None]:
    """The newest entry of each ledger; None where there is none, or it cannot be read."""
    return {
        name: each.newest if isinstance(each, LedgerSnapshot) else None
        for name, each in ledgers.items()
    }


def assessed(
    pipeline: Pipeline,
    store: LedgerStore,
    ledger: LedgerSnapshot,
    answer: KafkaFacts | RivermouthError,
    kafka: AskKafka | RivermouthError,
    now_s: float,
) -> Assessment:
    """What a run would do now; ``answer`` is what Kafka said after the ledger was read.

    Kafka is asked again where a run has committed meanwhile. Where it gave no answer, its guards
    are left out. Raises what ``look`` does, and SourceError.
    """
    if pipeline.source.topics.pattern:  # the ledger was read before its topics were known
        ledger = with_others(ledger, pipeline, Others(store.log, pipeline.ledger_name))
    if isinstance(answer, RivermouthError) or isinstance(kafka, RivermouthError):
        return look(store, pipeline, ledger, lambda each: assess(each, None, pipeline, now_s))

    first = ledger

    def judge(each: LedgerSnapshot) -> Assessment:
        facts = answer if each is first else facts_of(kafka, pipeline)
        return assess_by(kafka, facts, each, pipeline, now_s)

    return look(store, pipeline, ledger, judge)


def idle_starts(config: Config, secrets: Secrets = unresolved) -> list[str]:
    """The pipelines whose ``start`` has no effect any more.

    Their ledgers tell it, as far as they can be read: none where the tables are in a catalog.
    """
    found, lake = list[str](), Lake.if_any(config, secrets)
    for each in config.pipelines.values() if lake else ():
        if lake and "start" in each.source.model_fields_set:
            ledger = ledger_or_fault(ledger_of(lake, each), each)
            if isinstance(ledger, LedgerSnapshot) and start_is_over(each, ledger.newest):
                found.append(each.name)
    return found


def way_now(pipeline: Pipeline, lake: Lake | None, log: LedgerLog | None = None) -> Way | None:
    """That, on one machine; None where the mode leaves no choice.

    ``lake``: where the tables lie as files (None: they are in a catalog). A table that does not
    exist or cannot be read says nothing. ``log`` is that of the table, where somebody has read it
    already.
    """
    shape = pipeline.shape
    if LANDINGS.first(LOCAL, keyed=shape.keyed, sends=shape.sends).name not in (FILES, SEND):
        return None
    table = pipeline.target.table
    if lake is None:
        return way_of(pipeline, ELSEWHERE)
    known = way_of(pipeline, UNPINNED if lake.folder and not pins_threads() else "")
    if known.reason:
        return known
    read = log if isinstance(log, DeltaLog) else DeltaLog(lake.store(table))
    of_bad = DeltaLog(lake.store(table.quarantine))
    bad = None if shape.sends else _definition(of_bad)
    return way_into(known, _definition(read), bad, replaced(pipeline))


def _definition(log: DeltaLog) -> Definition | None:
    with suppress(LogUnreadable, LedgerBroken):
        return log.definition()
    return None


_COMMITS = 64
"""So many of the newest commits are looked at."""


@dataclass(frozen=True)
class Compacted:
    """The newest job of a run: when it was committed, in ms since 1970, how many files it took, and
    how many came of them. ``share`` is the part of the time that jobs took lately.
    """

    at_ms: int
    removed: int
    added: int
    share: float


@dataclass(frozen=True)
class Layout:
    """The files of the newest version, their bytes, and how many of them have deleted rows.

    ``deleted`` is the part of all rows that is deleted. ``compacted``: None: not lately.
    """

    files: int
    size: int
    vectors: int
    deleted: float
    compacted: Compacted | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to tell people."""
        return not self.vectors and self.compacted is None

    def as_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)

    def line(self, ago: str) -> str:
        """For people. ``ago``: how long ago compaction was."""
        found = f"{self.files:,} files, {self.size / 1e6:,.1f} MB"
        if self.vectors:
            found += f"; {self.vectors:,} with deleted rows, {self.deleted:.0%} of all rows"
        if (last := self.compacted) is not None:
            found += f"; compacted {ago}, {last.removed:,} files into {last.added:,}"
            found += f"; compaction took {last.share:.0%} of the time"
        return found


def layout_of(log: DeltaLog) -> Layout | None:
    """That of a table, whose log tells of its files; None where it cannot be read, or is none."""
    with suppress(LogUnreadable, LedgerBroken):
        if log.definition() is None:
            return None
        files = [*log.state.current.values()]
        vectors = [each.vector.rows for each in files if each.vector is not None]
        rows = sum(each.rows or 0 for each in files)
        return Layout(
            files=len(files),
            size=sum(each.size for each in files),
            vectors=len(vectors),
            deleted=round(sum(vectors) / max(rows, 1), 4),
            compacted=_compacted([*_newest(log)]),
        )
    return None


def _newest(log: DeltaLog) -> Iterator[Mapping[str, Any]]:
    """What the newest commits say of themselves, the newest one first."""
    newest = log.state.version
    for version in range(newest, max(newest - _COMMITS, -1), -1):
        actions = log.read(version)
        if actions is None:  # clean-up has taken it, and all before
            return
        yield next((dict(each["commitInfo"]) for each in actions if "commitInfo" in each), {})


def _compacted(commits: list[Mapping[str, Any]]) -> Compacted | None:
    jobs = [e for e in commits if (e.get("operation"), e.get("engineInfo")) == ("OPTIMIZE", ENGINE)]
    if not jobs:
        return None
    times = [int(each["timestamp"]) for each in commits if "timestamp" in each]
    took = sum(_metric(each, "executionTimeMs") for each in jobs)
    return Compacted(
        at_ms=int(jobs[0]["timestamp"]),
        removed=_metric(jobs[0], "numRemovedFiles"),
        added=_metric(jobs[0], "numAddedFiles"),
        share=round(min(1.0, took / max(1, max(times) - min(times))), 4),
    )


def _metric(commit: Mapping[str, Any], name: str) -> int:
    return int((commit.get("operationMetrics") or {}).get(name, 0))
