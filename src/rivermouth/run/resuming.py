"""What an operator's ``resume`` would write: the facts are asked for here, and decided on."""

from __future__ import annotations

from dataclasses import replace

from rivermouth.config import Pipeline
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import facts_of, with_times
from rivermouth.protocol.accepting import Offsets, accept_changes, logs_to_ask_about
from rivermouth.protocol.changes import accepted_changes
from rivermouth.protocol.consequences import ResumePlan
from rivermouth.protocol.resume import resume
from rivermouth.protocol.snapshot import LedgerSnapshot


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
