"""A table with a ledger that no run has written."""

from __future__ import annotations

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import Config, unresolved
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import Position
from tests.folders import folder_of_config


def read_up_to(config: Config, name: str, position: Position) -> None:
    """The pipeline has a table whose ledger holds this position."""
    pipeline = config.pipelines[name]
    facts = Kafka(config.kafka.revealed(unresolved)).facts(pipeline.source.topics)
    path = str(pipeline.target.table.path(folder_of_config(config)))
    rows = pa.table({"id": pa.array([1], pa.int64())})
    write_deltalake(path, rows.slice(0, 0))
    entry = Entry(
        pipeline=name,
        sequence=1,
        commit=name,
        cluster=facts.cluster,
        table=str(DeltaTable(path).metadata().id),
        topics=facts.topics,
        ranges=(),
        position=position,
        base=0,
        config=pipeline.identity,
    )
    properties = CommitProperties(
        app_transactions=[Transaction(app_id(name), 1)],
        custom_metadata={"userMetadata": to_json(entry)},
    )
    write_deltalake(path, rows, mode="append", commit_properties=properties)
