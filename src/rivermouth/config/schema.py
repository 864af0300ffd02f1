"""The JSON Schema of the file as users write it, for completion and checks in an editor.

It says a little less than ``load``: rules over several settings are not in it. Any value that
is not plain text may also be a ``${env:…}`` reference.
"""

from __future__ import annotations

from collections.abc import Iterable

from rivermouth.config.catalog import DEFAULTS
from rivermouth.config.names import IDENTIFIER, PIPELINE
from rivermouth.config.values import OnDataLoss
from rivermouth.registry.formats import FORMATS
from rivermouth.registry.shapes import SHAPES

Schema = dict[str, object]

_REFERENCE: Schema = {"type": "string", "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_SECRET = r"(^|[^$])\$\{secret:"
_OPTION: Schema = {"type": ["string", "number", "boolean"]}


def json_schema() -> dict[str, object]:
    """The schema (draft 2020-12) of a configuration file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rivermouth configuration",
        **_object(
            "One cluster, one warehouse, and pipelines by name.",
            {
                "version": _or_reference({"const": 1}, "Version of this format."),
                "kafka": _kafka(),
                "warehouse": _warehouse(),
                "trigger": _duration("Pause between batches of run --continuous, for all."),
                "pipelines": {
                    "description": "Pipelines by name.",
                    "type": "object",
                    "minProperties": 1,
                    "patternProperties": {f"^{PIPELINE}$": _pipeline()},
                    "additionalProperties": False,
                },
            },
            ("version", "kafka", "warehouse", "pipelines"),
        ),
    }


def _kafka() -> Schema:
    servers = _text("Brokers: host:port, several with commas.", "localhost:9092")
    option: Schema = {
        **_OPTION,
        "description": "Option of the Kafka client; what is secret, by reference.",
        "examples": ["${secret:scope/key}", "${env:NAME}"],
    }
    return {
        "description": "Options of the Kafka client, word for word, without a prefix.",
        "type": "object",
        "properties": {"bootstrap.servers": {**servers, "not": {"pattern": _SECRET}}},
        "required": ["bootstrap.servers"],
        "additionalProperties": option,
    }


def _warehouse() -> Schema:
    names: dict[str, Schema] = {
        "catalog": _text("Catalog of the tables.", "main"),
        "schema": _text("Schema of the offsets table and of the volume.", DEFAULTS["schema"]),
        "volume": _text("Volume for what a run needs while it runs.", DEFAULTS["volume"]),
    }
    catalog = _object("Names in Unity Catalog, on Databricks.", {**names}, ("catalog",))
    return {
        "description": "Where the tables lie: a folder, or a catalog.",
        "examples": ["./lake", {"catalog": "main"}],
        "anyOf": [_text("Relative to the folder of this file.", "./lake"), catalog],
    }


def _pipeline() -> Schema:
    columns = _text(
        "Columns of the table as SQL text.",
        "order_id BIGINT, amount DECIMAL(12,2), tags ARRAY<STRING>, at TIMESTAMP",
    )
    return _object(
        "One way from topics to a table.",
        {
            "source": _source(),
            "schema": columns,
            "target": _target(),
            "trigger": _duration("Pause between batches of run --continuous."),
        },
        ("source", "schema", "target"),
    )


def _source() -> Schema:
    start: Schema = {
        "description": "Where to start without a ledger: earliest, latest, or offsets.",
        "default": "earliest",
        "examples": ["earliest", "latest", {"orders": {"0": 100, "1": "latest"}}],
        "anyOf": [
            {"enum": ["earliest", "latest"]},
            _REFERENCE,
            {"type": "string", "pattern": r"^\s*\{"},
            {"type": "object", "additionalProperties": _partitions()},
        ],
    }
    count = _or_reference(
        {"type": "integer", "minimum": 1}, "Most offsets in one batch.", default=500_000
    )
    topics = _names("Topics to read.", ["orders"], least=1)
    schema = _object(
        "What is read.",
        {
            "topics": topics,
            "subscribe": _text("Spark's name of topics: text with commas.", "orders,payments"),
            "format": _choice(FORMATS.by_name, "How values are encoded."),
            "start": start,
            "startingOffsets": {**start, "description": "Spark's name of start."},
            "key": _choice(FORMATS.keys, "How the message key holds the keys; for tombstones."),
            "max_offsets_per_trigger": count,
            "maxOffsetsPerTrigger": {
                **count,
                "description": "Spark's name of max_offsets_per_trigger.",
            },
            "on_data_loss": _choice(
                [each.value for each in OnDataLoss],
                "What to do where Kafka has deleted records that were not read.",
            ),
            "failOnDataLoss": _or_reference(
                {"const": True}, "Always true: a loss is never silent."
            ),
        },
        ("format",),
    )
    both = (("start", "startingOffsets"), ("max_offsets_per_trigger", "maxOffsetsPerTrigger"))
    return {
        **schema,
        "patternProperties": {r"^kafka\.": {**_OPTION, "description": "Option of this source."}},
        "oneOf": [{"required": ["topics"]}, {"required": ["subscribe"]}],
        "allOf": [{"not": {"required": list(names)}} for names in both],
    }


def _partitions() -> Schema:
    offset: Schema = {
        "anyOf": [
            {"type": "integer", "minimum": -2},
            {"enum": ["earliest", "latest"]},
            _REFERENCE,
        ]
    }
    return {
        "type": "object",
        "patternProperties": {"^[0-9]+$": offset},
        "additionalProperties": False,
    }


def _target() -> Schema:
    table: Schema = {
        "description": "The table as schema.name.",
        "examples": ["silver.orders"],
        "anyOf": [
            {"type": "string", "pattern": rf"^{IDENTIFIER}\.{IDENTIFIER}$"},
            _REFERENCE,
        ],
    }
    return _object(
        "What is written.",
        {
            "table": table,
            "mode": _choice(
                SHAPES.by_name, "Add rows, or keep the newest row per key.", default="append"
            ),
            "keys": _names("Columns that identify a row; for mode upsert.", ["order_id"]),
            "order_by": _names("Columns whose greater value is newer.", ["updated_at"]),
            "properties": {
                "description": "Delta table properties, set when the table is created.",
                "type": "object",
                "additionalProperties": _OPTION,
            },
        },
        ("table",),
    )


def _object(description: str, properties: Schema, required: tuple[str, ...]) -> Schema:
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str, example: str) -> Schema:
    return {"description": description, "type": "string", "examples": [example]}


def _names(description: str, example: list[str], least: int = 0) -> Schema:
    return {
        "description": description,
        "examples": [example],
        "type": "array",
        "items": {"type": "string"},
        "uniqueItems": True,
        "minItems": least,
    }


def _choice(names: Iterable[str], description: str, **more: object) -> Schema:
    return _or_reference({"enum": [*names]}, description, **more)


def _duration(description: str) -> Schema:
    duration: Schema = {"type": "string", "pattern": "^[0-9]{1,9}(ms|s|m|h)$"}
    return _or_reference(duration, description, default="10s", examples=["10s", "500ms", "2m"])


def _or_reference(schema: Schema, description: str, **more: object) -> Schema:
    return {"description": description, **more, "anyOf": [schema, _REFERENCE]}
