"""What an operator's ``resume`` would write: the facts are asked for here, and decided on."""

from __future__ import annotations

from dataclasses import replace

from rivermouth.config import Pipeline
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import facts_of, with_times
from rivermouth.protocol.accepting import Offsets, accept_changes, logs_to_ask_about
from rivermouth.protocol.changes import accepted_changes
from rivermouth.protocol.consequences import ResumePlan
from rivermouth.protocol.history import History
from rivermouth.protocol.replay import replay
from rivermouth.protocol.resume import nothing_left, resume
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.ports import LedgerLog


def plan_resume(
    ledger: LedgerSnapshot,
    kafka: Kafka,
    pipeline: Pipeline,
    accept: str,
    offsets: Offsets | None = None,
) -> ResumePlan:
    """The entry that accepts what happened, and what it means.

    ``accept`` is ``restore`` or ``reset``, see ``protocol.resume``, or kinds of changes with
    commas, see ``protocol.accepting``, as is ``offsets``. Raises ResumeRefused where something
    else happened.
    """
    facts = with_times(kafka, facts_of(kafka, pipeline), pipeline)
    changes = accepted_changes(accept)
    if changes:
        truncated = kafka.truncated_logs(logs_to_ask_about(ledger.newest, facts))
        facts = replace(facts, truncated=truncated)
        draft = accept_changes(ledger, facts, pipeline, changes, offsets)
    else:
        draft = resume(ledger, facts, pipeline, accept)
    return ResumePlan.of(ledger.newest, draft, facts)


def check_no_other_rollback(history: History, log: LedgerLog) -> None:
    """Raise where entries were rolled back, or put back, since the ledger was read.

    Where another driver has accepted what was rolled back, its entry says so to the attempt.
    """
    now, _ = replay(history, log.commits_after(history.version or 0))
    if now.rolled_back_by == history.rolled_back_by:
        return
    if now.faults:
        raise now.faults[-1]
    if now.sequence == history.sequence:
        raise nothing_left(now)
