"""Where every pipeline stands: what the next run would do, and how far it is behind.

The judgement is ``protocol.assess``, on which a run acts. No JVM, no consumer group. The tables
are read first and Kafka second, so that a lag can only come out too large by what has just been
written. What is not known is None, never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.errors import Halt, RivermouthError, as_ours
from rivermouth.kafka.facts import AskTopic
from rivermouth.kafka.groups import ConfiguredGroups, Groups
from rivermouth.operate.facts import Layout, layout_of, way_now
from rivermouth.operate.pace import Evidence, Pace, State, pace_of
from rivermouth.operate.survey import Stores, Surveyed, each_of, stores_in, survey
from rivermouth.operate.waiting import Waiting, waiting
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import PartitionOffset, TopicPartition, unnested
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import OVER, shown, start_is_over
from rivermouth.protocol.ways import Way
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.retry_notes import Retrying, RetryNotes
from rivermouth.warehouse.ports import LedgerLog, LedgerStore

if TYPE_CHECKING:
    from rivermouth.verification.proved import RecordState


@dataclass(frozen=True)
class MirrorStatus:
    """A group beside its ledger. ``behind`` is in offsets, over all partitions; None: not known.

    ``reason`` says why it is not known, or what is strange.
    """

    group: str
    behind: int | None = None
    reason: str | None = None

    def line(self) -> str:
        """``group burrow: 1,200 offsets behind the ledger``."""
        if self.behind is None:
            return f"group {self.group}: not known how far it is behind the ledger: {self.reason}"
        text = f"group {self.group}: {self.behind:,} offsets behind the ledger"
        return f"{text}; {self.reason}" if self.reason else text


def mirror_of(
    answer: Surveyed, position: Mapping[str, Mapping[str, int]] | None, groups: Groups
) -> MirrorStatus | None:
    """The group of a pipeline whose ledger is at ``position``; None where it has no group.

    Where Kafka did not ``answer`` for the topics, it is not asked again.
    """
    source = answer.pipeline.source
    group, topics = source.mirror_group, source.topics
    if group is None:
        return None
    if isinstance(answer.facts, RivermouthError):
        return MirrorStatus(group, reason=str(answer.facts))
    recorded = unnested(position or {}).items()
    ours = {each: at for each, at in recorded if topics.reads(each.topic, each.partition)}
    if not ours:
        return MirrorStatus(group, reason="the ledger tells no position")
    try:
        return _compared(group, ours, groups.read(group, ours))
    except Exception as fault:
        return MirrorStatus(group, reason=str(as_ours(fault, f"group {group}")))


def _compared(
    group: str, ours: Mapping[TopicPartition, int], theirs: Mapping[TopicPartition, int | None]
) -> MirrorStatus:
    missing = sum(theirs.get(each) is None for each in ours)
    if missing:
        return MirrorStatus(group, reason=f"it has no offset of {missing:,} partition(s)")
    lags = [at - (theirs[each] or 0) for each, at in ours.items()]
    ahead = -sum(each for each in lags if each < 0)
    reason = f"{ahead:,} ahead: a run goes on, or the ledger was taken back" if ahead else None
    return MirrorStatus(group, sum(each for each in lags if each > 0), reason)


Proofs = Callable[[Pipeline], "RecordState | None"]


@dataclass(frozen=True)
class PipelineStatus:
    """One pipeline. ``position`` is the next offset to read, by topic and partition.

    ``lag_messages`` is the offset span between the position and the last stable offset, an
    upper bound of the records. ``lag_seconds`` is the age of the newest committed record:
    the greatest ``_kafka.timestamp`` in the statistics of the files that the newest entry
    added, else the time of that commit; 0 when caught up. ``held_back`` are offsets behind
    open transactions, in no lag: nobody may read them before these end. ``projected`` is the newest
    sequence that the offsets table holds: below ``sequence`` it is not up to date. ``accepted`` are
    the changes of source and settings that an operator accepted, each with its entry. ``proof`` is
    what ``verify`` proved last, and whether it stands; None where nothing is on record.
    ``retrying`` is what a run says that tries the pipeline again, or was killed while it did.
    ``mirror`` is the consumer group of ``mirror_group``; None where none is configured. ``way`` is
    how commits would be made now; None where the mode leaves no choice. ``layout`` is that of a
    table whose rows land as files. ``pace`` is that of the newest commits. ``waiting`` tells of the
    records that wait; None: none does, or a run would not go on.
    """

    name: str
    state: State
    table: str
    reason: str | None = None
    sequence: int | None = None
    projected: int | None = None
    table_version: int | None = None
    position: Mapping[str, Mapping[str, int]] | None = None
    lag_messages: int | None = None
    lag_seconds: float | None = None
    held_back: int | None = None
    accepted: tuple[tuple[str, int], ...] = ()
    proof: RecordState | None = None
    retrying: Retrying | None = None
    mirror: MirrorStatus | None = None
    way: Way | None = None
    layout: Layout | None = None
    pace: Pace = field(default_factory=Pace)
    waiting: Waiting | None = None

    @property
    def caught_up_in_s(self) -> float | None:
        """In how many seconds nothing waits, if it goes on so; None: nobody can tell."""
        if self.state is not State.CATCHING_UP or self.lag_seconds is None:
            return None
        return self.pace.caught_up_in(self.lag_seconds)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of one pipeline."""
        return {
            "name": self.name,
            "state": self.state.value,
            "reason": self.reason,
            "sequence": self.sequence,
            "offsets_table_sequence": self.projected,
            "table": self.table,
            "table_version": self.table_version,
            "position": self.position,
            "accepted": [{"change": kind, "entry": at} for kind, at in self.accepted],
            "proof": self.proof.as_dict() if self.proof is not None else None,
            "retrying": asdict(self.retrying) if self.retrying is not None else None,
            "mirror": asdict(self.mirror) if self.mirror is not None else None,
            "landing": self.way.as_dict() if self.way is not None else None,
            "files": self.layout.as_dict() if self.layout is not None else None,
            "lag": {
                "messages": self.lag_messages,
                "seconds": self.lag_seconds,
                "held_back": self.held_back,
                "caught_up_in_seconds": self.caught_up_in_s,
            },
            "waiting": self.waiting.as_dict() if self.waiting is not None else None,
            "pace": self.pace.as_dict(),
        }


@dataclass(frozen=True)
class Status:
    """All pipelines, in the order of the configuration."""

    pipelines: Sequence[PipelineStatus]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth status --json``."""
        return {"pipelines": [each.as_dict() for each in self.pipelines]}


def status(
    config: Config,
    kafka: AskTopic | None = None,
    now: Callable[[], float] = time.time,
    secrets: Secrets = unresolved,
    stores: Stores | None = None,
    proofs: Proofs | None = None,
    groups: Groups | None = None,
) -> Status:
    """The status of every pipeline. Never raises for what a pipeline is in.

    ``kafka`` answers for topics and ledgers (default: the configured broker, asked at most
    5 s at a time); ``now`` is the clock, in seconds since 1970; ``secrets`` knows what the
    configuration only names; ``stores`` says where each ledger is (default: in the configured
    folder); ``proofs`` tells what is proved of each
    pipeline (default: nothing); ``groups`` tells what consumer groups hold (default: the broker).
    """
    lake = Lake.if_any(config, secrets)
    store_of = stores or stores_in(lake or Lake.of(config), config)
    surveyed = survey(config, kafka, secrets, store_of)
    proof_of = proofs or (lambda _: None)
    note_of = RetryNotes(lake).read if lake else lambda _: None
    mirrors = groups or ConfiguredGroups(config, secrets)

    def beside(each: Pipeline) -> dict[str, Any] | Exception:
        log = store_of(each).log
        known = {
            "proof": partial(proof_of, each),
            "retrying": partial(note_of, each.name),
            "pace": partial(_pace, store_of(each), each),
        }
        return _beside(each, lake, log, known)

    looked = each_of([*config.pipelines.values()], beside, lake)

    def of(each: Surveyed, judged: Judged) -> PipelineStatus:
        known, found = looked[each.pipeline.name], judged.status
        if isinstance(known, Exception):
            return _refused(found, as_ours(known, each.pipeline.name))
        try:
            found = replace(found, mirror=mirror_of(each, found.position, mirrors), **known)
        except Exception as fault:
            return _refused(found, as_ours(fault, each.pipeline.name))
        return _kept_up(found, waits.get(found.name), now() * 1000)

    judged = [_judged(each, now()) for each in surveyed]
    waits = _waiting(surveyed, judged, now() * 1000)
    with closing(mirrors):
        return Status([*map(of, surveyed, judged)])


def _waiting(
    surveyed: Sequence[Surveyed], judged: Sequence[Judged], now_ms: float
) -> Mapping[str, Waiting]:
    asked = surveyed[0].kafka if surveyed else None
    if asked is None or isinstance(asked, RivermouthError):
        return {}
    return waiting({each.status.name: each.following for each in judged}, asked, now_ms)


def _kept_up(found: PipelineStatus, waits: Waiting | None, now_ms: float) -> PipelineStatus:
    """The status with what the newest commits prove, where a run would go on."""
    if found.lag_messages is None or found.state is State.NEW:
        return replace(found, waiting=waits)
    oldest_ms = None if waits is None else waits.oldest_ms
    retrying = found.retrying is not None
    evidence = Evidence(now_ms, found.lag_messages, found.pace, oldest_ms, retrying)
    return replace(found, state=evidence.state, waiting=waits)


def _beside(
    pipeline: Pipeline,
    lake: Lake | None,
    log: LedgerLog | None,
    known: Mapping[str, Callable[[], object]],
) -> dict[str, Any] | Exception:
    """What is told of a pipeline beside its ledger; or why it cannot be told."""
    try:
        way = way_now(pipeline, lake, log)
        found = {name: ask() for name, ask in known.items()}
        return {**found, "way": way, "layout": _layout(log, way)}
    except Exception as fault:
        return fault


def _pace(store: LedgerStore, pipeline: Pipeline) -> Pace:
    with suppress(RivermouthError):  # what is wrong with the log is told as what blocks
        return pace_of(store.log, pipeline.ledger_name)
    return Pace()


def _layout(log: LedgerLog | None, way: Way | None) -> Layout | None:
    known = way is not None and way.by == "files"
    return layout_of(log) if known and isinstance(log, DeltaLog) else None


@dataclass(frozen=True)
class Judged:
    """A pipeline as far as its ledger and Kafka tell, and the records that wait for it first."""

    status: PipelineStatus
    following: tuple[PartitionOffset, ...] = ()


def _judged(each: Surveyed, now_s: float) -> Judged:
    pipeline = each.pipeline
    found = PipelineStatus(pipeline.name, State.UNKNOWN, str(pipeline.target.table))
    if isinstance(each.ledger, RivermouthError):
        return Judged(_refused(found, each.ledger))
    try:
        assessment = each.assessed(now_s)
        found = _of_ledger(found, assessment.ledger)
        if assessment.halt is not None:
            return Judged(_refused(found, assessment.halt))
        if isinstance(each.facts, RivermouthError):
            return Judged(_refused(found, each.facts))
        found = _with_lag(pipeline, each.store, found, assessment, now_s)
        return Judged(found, _following(assessment, each.facts))
    except Exception as fault:  # a defect of ours is one pipeline's, too
        return Judged(_refused(_of_ledger(found, each.ledger), as_ours(fault, pipeline.name)))


def _following(assessment: Assessment, facts: KafkaFacts) -> tuple[PartitionOffset, ...]:
    """The next offset of each partition that has more."""
    starts = assessment.starts.offsets.items()
    ends = facts.watermarks
    return tuple((each, at) for each, at in starts if each in ends and at < ends[each].high)


def _refused(found: PipelineStatus, fault: RivermouthError) -> PipelineStatus:
    state = State.BLOCKED if isinstance(fault, Halt) else State.UNKNOWN
    return replace(found, state=state, reason=str(fault))


def _of_ledger(found: PipelineStatus, ledger: LedgerSnapshot) -> PipelineStatus:
    """The status as far as the ledger tells it."""
    history = ledger.history
    position = history.position.as_nested() if history.newest is not None else None
    sequence = history.sequence or ledger.txn or None
    projected = ledger.projected or None
    accepted = history.newest.accepted if history.newest is not None else ()
    known = replace(found, sequence=sequence, projected=projected, accepted=accepted)
    return replace(known, table_version=history.version, position=position)


def _with_lag(
    pipeline: Pipeline,
    store: LedgerStore,
    found: PipelineStatus,
    assessment: Assessment,
    now_s: float,
) -> PipelineStatus:
    """The status of a pipeline that a run would go on with."""
    messages, held_back = assessment.behind, assessment.held_back
    reasons = [_held_back(held_back)] if held_back else []
    reasons += [shown(assessment.vanished)] if assessment.vanished else []
    reasons += [OVER] if start_is_over(pipeline, assessment.ledger.newest) else []
    reason = "; ".join(reasons) or None
    found = replace(found, held_back=held_back, reason=reason, lag_messages=messages)
    if assessment.ledger.newest is None:
        return replace(found, state=State.NEW)
    if not messages:
        return replace(found, state=State.OK, lag_seconds=0.0)
    newest_ms = _newest_ms(store, assessment)
    age = None if newest_ms is None else max(0.0, round(now_s - newest_ms / 1000, 3))
    return replace(found, state=State.CATCHING_UP, lag_seconds=age)


def _newest_ms(store: LedgerStore, assessment: Assessment) -> int | None:
    recorded = assessment.ledger.history.recorded
    if recorded is None:
        return None
    newest_ms: int | None = None
    with suppress(RivermouthError):  # the commit is gone by now: its time will do
        newest_ms = store.log.newest_record_ms(recorded.version)
    return newest_ms or recorded.timestamp_ms


def _held_back(offsets: int) -> str:
    return f"open transactions hold back {offsets:,} offsets; if they stay, one is hanging"
