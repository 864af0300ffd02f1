"""Records of a topic as the tasks of a pipeline decode them, without Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from rivermouth.config import Config, Pipeline, Secrets
from rivermouth.config.source import PLACE
from rivermouth.errors.registry import SchemasUnknown
from rivermouth.formats.tasks import decoder_of
from rivermouth.schemas.known import schemas_of, with_schemas


def decoded_messages(
    config: Config, pipeline: Pipeline, messages: Sequence[Message], secrets: Secrets
) -> dict[str, list[Any]]:
    """The columns of decoded rows, see ``formats.tasks``; asks the registry for what they name."""
    place = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    types = {"key": pa.binary(), "value": pa.binary(), **place}
    raw = {
        name: pa.array([getattr(each, name)() for each in messages], kind)
        for name, kind in types.items()
    }
    raw["timestamp"] = pa.nulls(len(messages), pa.timestamp("us", "UTC"))
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    read = messages if pipeline.reads_headers else ()
    headers: list[Any] = [each.headers() or () for each in read]
    named = [[{"key": name, "value": value} for name, value in each] for each in headers]
    raw |= {"headers": pa.array(named, pairs)} if named else {}
    with tempfile.TemporaryDirectory() as folder:
        known = schemas_of(config, secrets, Path(folder))
        while True:
            try:
                decode = replace(decoder_of(with_schemas(pipeline, known)), kafka=PLACE)
                found: dict[str, list[Any]] = decode(pa.RecordBatch.from_pydict(raw)).to_pydict()
                return found
            except SchemasUnknown as unknown:
                assert known is not None, "a rule of the configuration"
                known.want(unknown.numbers)
