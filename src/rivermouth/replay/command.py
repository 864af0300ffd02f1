"""The command ``replay`` on a local Spark session: in place, or into another table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import Config, Pipeline, Secrets, TableName, unresolved
from rivermouth.config.platforms import LOCAL
from rivermouth.config.registry import SHAPES
from rivermouth.debug import reach
from rivermouth.errors import ReplayRefused
from rivermouth.kafka.client import Kafka
from rivermouth.replay.in_place import InPlace
from rivermouth.replay.into_table import IntoTable, check_free
from rivermouth.replay.report import Replayed, ReplayPlan
from rivermouth.replay.request import Bound, replay_facts
from rivermouth.run.assembly import Assembly
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.spark.session import Spark


def replay(
    config: Config,
    spark: SparkSession | Spark,
    scratch: Path,
    name: str,
    begin: Bound,
    end: Bound | None = None,
    into: TableName | None = None,
    agree: Callable[[ReplayPlan], bool] = lambda plan: True,
    secrets: Secrets = unresolved,
) -> Replayed:
    """Read what the pipeline has read from ``begin`` to ``end`` again, and write its rows.

    Without ``into`` in its own table: then all that was read since is applied once more, in the
    order in which it was read. ``agree`` sees first what would change; where it says no, nothing is
    written. ``spark``, ``scratch`` and ``secrets`` are those of a ``Run`` on this machine. Raises
    ReplayRefused, and what a run would meet.
    """
    shared = Assembly.of(config, spark, scratch, LOCAL, secrets)
    check_mode(config.pipelines[name], elsewhere=into is not None)
    if into is not None:
        check_free(config, into)
    pipeline = shared.with_schemas(config.pipelines[name])
    try:
        with ExitStack() as resources:
            if into is None:
                resources.enter_context(shared.hold(pipeline))
            reach("P0")
            kafka = Kafka(config.kafka.revealed(secrets))
            at = replay_facts(pipeline, shared.warehouse.ledger(pipeline), kafka)
            if into is None:
                return InPlace(shared, at).replay(begin, end, agree)
            return IntoTable(shared, at, into).replay(begin, end, agree)
    except FAULTS as fault:
        raise translate(fault, name) from fault


def check_mode(pipeline: Pipeline, *, elsewhere: bool) -> None:
    """Raise ReplayRefused where a record may not be taken twice: in place, or ``elsewhere``."""
    shape, modes = pipeline.shape, [*SHAPES.by_name.values()]
    if pipeline.made_by:
        raise ReplayRefused(
            "a replay would not call the code that makes the rows",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="a pipeline whose rows are its records",
            found=f"rows made by {pipeline.made_by}",
            remedy="Read the ranges in Python: rivermouth.read",
        )
    if pipeline.source.envelope is not None and not elsewhere:
        raise ReplayRefused(
            "events are not applied twice: which rows they deleted is not known any more",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="a pipeline without source.envelope",
            found="one whose records are events",
            remedy="Replay into another table: --into SCHEMA.TABLE",
        )
    if shape.elsewhere if elsewhere else shape.again is not None:
        return
    taken = (each.elsewhere if elsewhere else each.again is not None for each in modes)
    known = " or ".join(each.name for each, takes in zip(modes, taken, strict=True) if takes)
    raise ReplayRefused(
        f"mode {shape.name} cannot be replayed {'into a table' if elsewhere else 'in place'}",
        where=f"{pipeline.name} {pipeline.target.table}",
        expected=f"mode {known}",
        found=f"mode {shape.name}: {shape.summary}",
        remedy="" if shape.elsewhere else "Read the ranges in Python: rivermouth.read",
    )
