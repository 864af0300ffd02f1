"""The settings of ``target`` for what is no table, see ``sending``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from rivermouth.config.sending import Delivery, read_function, read_sink_topics
from rivermouth.config.values import check_names, read_choice, read_flag
from rivermouth.config.written import Schema, Written, one_of, or_reference

_TEXT: Schema = or_reference({"type": "string"})
_NAMES: Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 0}

SinkTopics = Annotated[
    Annotated[
        tuple[str, ...],
        BeforeValidator(read_sink_topics),
        WithJsonSchema({"anyOf": [*_TEXT["anyOf"], {**_NAMES, "minItems": 1}]}),
    ]
    | None,
    Field(
        description="Instead of `table`: the topic of the same cluster to which each record is"
        " sent as JSON, or a list of topics together with `topic_column`, see [sinks](sinks.md).",
        examples=["orders-clean", ["orders-paid", "orders-open"]],
    ),
    Written(word="text, or list"),
]
TopicColumn = Annotated[
    str | None,
    Field(
        description="Only with `kafka`: the column, a STRING, that says for each record to which"
        " of the topics it is sent. A record in which it is null or another text goes to"
        " quarantine.",
        examples=["to_topic"],
    ),
    Written(lambda: _TEXT, word="column"),
]
SinkFunction = Annotated[
    Annotated[str, BeforeValidator(read_function), WithJsonSchema(_TEXT)] | None,
    Field(
        description="Instead of `table`: a function of yours that gets the rows, see"
        " [sinks](sinks.md).",
        examples=["shop.sinks:store"],
    ),
    Written(word="text"),
]
PartitionColumn = Annotated[
    str | None,
    Field(
        description="Only with `kafka`: the column, an INT, SMALLINT or TINYINT, that holds the"
        " number of the partition to which a record is sent. Where it is null, the key decides. A"
        " record in which it is negative goes to quarantine.",
        examples=["to_partition"],
    ),
    Written(lambda: _TEXT, word="column"),
]
MessageKey = Annotated[
    Annotated[
        tuple[str, ...],
        AfterValidator(check_names),
        Written(lambda: _NAMES, "list of columns"),
    ],
    Field(
        description="Only with `kafka`: the columns that the key of a sent record is made of, see"
        " [sinks](sinks.md#the-key). If the list is empty, it is the key of the record that was"
        " read.",
        examples=[["order_id"]],
    ),
]
ForwardHeaders = Annotated[
    Annotated[
        bool,
        BeforeValidator(read_flag),
        Written(lambda: or_reference({"type": "boolean"}), "`true` or `false`"),
    ],
    Field(
        description="Only with `kafka`: whether a record is sent with the headers that it was read"
        " with, see [sinks](sinks.md#headers).",
    ),
]
HeaderColumns = Annotated[
    Annotated[
        tuple[str, ...],
        AfterValidator(check_names),
        Written(lambda: _NAMES, "list of columns"),
    ],
    Field(
        description="Only with `kafka`: the columns that become headers of a sent record, each"
        " under its own name, see [sinks](sinks.md#headers).",
        examples=[["trace_id", "tenant"]],
    ),
]
DeliveryChoice = Annotated[
    Annotated[
        Delivery,
        BeforeValidator(lambda value: read_choice(Delivery, value)),
        Written(one_of(lambda: [each.value for each in Delivery])),
    ]
    | None,
    Field(
        description="What a crash may do. `exactly-once` is the default of a table, and the only"
        " value there. `kafka` and `foreach_partition` take `at-least-once`, the default there, or"
        " `at-most-once`.",
    ),
]
