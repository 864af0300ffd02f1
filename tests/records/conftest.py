"""A lake whose topics hold what serialisers write, and a real registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

from rivermouth.local.broker import Broker
from rivermouth.local.registry import LocalRegistry
from tests.lake import Lake


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker, rivermouth_registry: LocalRegistry) -> Lake:
    """An empty lake on the shared broker and the shared registry."""
    settings = {"schema_registry": {"url": rivermouth_registry.url}}
    return Lake(tmp_path, rivermouth_broker.bootstrap_servers, settings=settings)


class Registering:
    """Registers schemas, and frames values."""

    def __init__(self, url: str) -> None:
        self._url = url

    def avro(self, subject: str, schema: Mapping[str, Any]) -> int:
        """The number of a schema of Avro, which becomes the newest one of the subject."""
        return self._number(subject, Schema(json.dumps(schema), "AVRO"))

    def protobuf(self, subject: str, text: str, **imports: str) -> int:
        """The same of a file of Protobuf; ``imports`` are subjects by name, without ``.proto``."""
        references = [SchemaReference(f"{n}.proto", s, 1) for n, s in imports.items()]
        return self._number(subject, Schema(text, "PROTOBUF", references))

    def _number(self, subject: str, schema: Schema) -> int:
        with SchemaRegistryClient({"url": self._url}) as client:
            return int(client.register_schema(subject, schema))


@pytest.fixture
def registering(rivermouth_registry: LocalRegistry) -> Registering:
    return Registering(rivermouth_registry.url)


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def avro(schema: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bytes]:
    """Writes records of a schema of Avro."""
    parsed = fastavro.parse_schema(dict(schema))

    def write(value: Mapping[str, Any]) -> bytes:
        into = io.BytesIO()
        fastavro.schemaless_writer(into, parsed, value)
        return into.getvalue()

    return write


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    """A schema of Avro with these fields."""
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": listed}
