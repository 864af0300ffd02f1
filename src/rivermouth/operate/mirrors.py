"""How far the consumer groups of ``mirror_group`` are behind their ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.errors import as_ours
from rivermouth.kafka.groups import Groups
from rivermouth.operate.topic_facts import Answer, Fault
from rivermouth.protocol.offsets import TopicPartition, unnested


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
    answer: Answer, position: Mapping[str, Mapping[str, int]] | None, groups: Groups
) -> MirrorStatus | None:
    """The group of a pipeline whose ledger is at ``position``; None where it has no group.

    Where Kafka did not ``answer`` for the topics, it is not asked again.
    """
    source = answer.pipeline.source
    group, topics = source.mirror_group, source.topics
    if group is None:
        return None
    if isinstance(answer.facts, Fault):
        return MirrorStatus(group, reason=str(answer.facts))
    stood = unnested(position or {}).items()
    ours = {each: at for each, at in stood if topics.reads(each.topic, each.partition)}
    if not ours:
        return MirrorStatus(group, reason="the ledger tells no position")
    try:
        return _compared(group, ours, groups.read(group, ours))
    except Exception as fault:
        return MirrorStatus(group, reason=str(as_ours(fault, f"group {group}")))


def _compared(
    group: str, ours: Mapping[TopicPartition, int], held: Mapping[TopicPartition, int | None]
) -> MirrorStatus:
    missing = sum(held.get(each) is None for each in ours)
    if missing:
        return MirrorStatus(group, reason=f"it has no offset of {missing:,} partition(s)")
    apart = [at - (held[each] or 0) for each, at in ours.items()]
    ahead = -sum(each for each in apart if each < 0)
    reason = f"{ahead:,} ahead: a run goes on, or the ledger was taken back" if ahead else None
    return MirrorStatus(group, sum(each for each in apart if each > 0), reason)
