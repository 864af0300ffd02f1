"""The check: what Kafka, the tables and the producer say must be one story.

Independent of the product, of Spark and of deltalake: it reads Kafka with librdkafka, Delta
logs as JSON, data files with pyarrow, and deletion vectors with pyroaring.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults.checker.cursor import Cursor
from tests.faults.checker.evidence import Evidence
from tests.faults.checker.kafka import Cluster, Facts
from tests.faults.checker.log import Stale
from tests.faults.checker.table import log_findings
from tests.faults.checker.verdict import Fault, Finding, Verdict


def check(evidence: Evidence, cursor: Cursor | None = None, *, seed: int = 0) -> Verdict:
    """Check everything, or with the ``cursor`` of an earlier verdict read only what is new.

    What was found before is found again: a verdict is about the state as it is. Data files,
    records and texts that an earlier check has read are not read again; a full check reads
    all. ``seed`` chooses which versions of a large upsert table are compared.
    """
    cluster = Cluster(evidence.servers)
    facts = cluster.facts(topic for each in evidence.pipelines for topic in each.topics)
    try:
        state = cursor or Cursor(evidence)
        _update(evidence, state, cluster, facts, seed)
    except Stale:  # a table was made anew: what is known of it is of no use
        state = Cursor(evidence)
        _update(evidence, state, cluster, facts, seed)
    records = [each for table in state.tables for each in table.topics.records.values()]
    return Verdict(
        findings=tuple(_findings(evidence, state)),
        records=sum(len(each.offsets) for each in records),
        entries=sum(table.ledger.entries for table in state.tables),
        snapshots=sum(table.snapshots.compared for table in state.tables),
        unchecked=sum(table.unchecked for table in state.tables),
        cursor=state,
    )


def _update(evidence: Evidence, state: Cursor, cluster: Cluster, facts: Facts, seed: int) -> None:
    state.offsets.update()
    for table in state.tables:
        table.update(cluster, facts, seed)
    if state.history is not None:
        state.history.update()
    if state.snapshots is not None:
        state.snapshots.update()
    state.texts.search([*evidence.texts, *_logs(evidence.warehouse)])


def _logs(warehouse: Path) -> Iterator[Path]:
    return warehouse.rglob("_delta_log")


def _findings(evidence: Evidence, state: Cursor) -> Iterator[Finding]:
    yield from log_findings(state.offsets.log)
    for table in state.tables:
        yield from table.findings(settled=evidence.settled)
        if state.history is not None:
            yield from table.heard(state.history, settled=evidence.settled)
        if state.snapshots is not None:
            yield from table.seen(state.snapshots)
    for problem in state.history.problems if state.history is not None else ():
        yield Finding(Fault.UNREADABLE, str(evidence.history), problem)
    yield from state.texts.findings
