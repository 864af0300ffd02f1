"""Rows that own code makes to be sent: with the key of their records, in order, or refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import DataFrame

from rivermouth.config import Pipeline
from rivermouth.errors import TransformFailed
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.offsets import Position
from rivermouth.write.evaluation import persisted
from rivermouth.write.landings.send import SinkTransform
from rivermouth.write.transform import transform_of
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GOOD: list[RawRow] = [(b"k%d" % n, b'{"n": %d}' % n, n % 2, n // 2) for n in range(10)]
FUNCTION = {"foreach_partition": "shop:store"}
Keep = Callable[[DataFrame], DataFrame]


def a_pipeline(select: str, schema: str, target: dict[str, Any], function: str = "") -> Pipeline:
    own = {"transform": f"tests.spark.own_code:{function}"} if function else {"select": select}
    whole = {"table": "rivermouth.ledger_p", "mode": "send", "columns": schema, **target}
    source = {"topics": ("t",), "format": "json"}
    facts = {"name": "p", "source": source, "ddl": "n BIGINT", "target": whole}
    return Pipeline.model_validate({**facts, **own})


def sent(bench: Bench, pipeline: Pipeline, *, staged: bool = False) -> list[tuple[Any, ...]]:
    """What is to be sent of ``GOOD``: partition, offset, values, key; as the parts have them."""
    own = transform_of(pipeline)
    assert own is not None
    with ExitStack() as stack:
        folder = bench.folder / "stage" if staged else None
        good = stack.enter_context(persisted(decoder(pipeline)(bench.raw(GOOD)), None))
        plan = bench.plan(1, GOOD, Position())
        found = SinkTransform(pipeline, own).made(
            good, plan, lambda rows: stack.enter_context(persisted(rows, folder))
        )
        rows = found.rows.collect()
    assert len(rows) == found.number
    names = found.rows.columns
    return [
        (
            row["_kafka"]["partition"],
            row["_kafka"]["offset"],
            *row["row"],
            *([row["key"]] if "key" in names else []),
        )
        for row in rows
    ]


@pytest.mark.parametrize("staged", [False, True])
def test_a_made_row_has_the_key_of_its_record(bench: Bench, staged: bool) -> None:
    pipeline = a_pipeline("n * 2 AS twice", "twice BIGINT", {"kafka": ("out",)})
    expected = {(n % 2, n // 2, 2 * n, b"k%d" % n) for n in range(10)}
    assert {*sent(bench, pipeline, staged=staged)} == expected


@pytest.mark.takes_long(
    "doubled-target0", "doubled-target1", "joined-target0", "joined-target1", "backwards-target1"
)
@pytest.mark.parametrize("target", [FUNCTION, {"kafka": ("out",)}])
@pytest.mark.parametrize("function", ["doubled", "joined", "backwards"])
def test_the_rows_of_a_kafka_partition_stay_in_their_order(
    bench: Bench, function: str, target: dict[str, Any]
) -> None:
    rows = sent(bench, a_pipeline("", "m BIGINT, twice BIGINT", target, function))
    assert len(rows) == 10
    for partition in (0, 1):
        assert [offset for number, offset, *_ in rows if number == partition] == [*range(5)]


REFUSED: dict[str, tuple[Pipeline, str]] = {
    "no topic": (
        a_pipeline(
            "n AS id, if(n = 7, NULL, 'a') AS to",
            "id BIGINT, `to` STRING",
            {"kafka": ("a", "b"), "topic_column": "to"},
        ),
        'to names none of the topics in target.kafka: {"topic":"t","partition":1,"offset":3',
    ),
    "another topic": (
        a_pipeline(
            "n AS id, if(n = 7, 'A', 'a') AS to",
            "id BIGINT, `to` STRING",
            {"kafka": ("a", "b"), "topic_column": "to"},
        ),
        "to names none of the topics",
    ),
    "a negative partition": (
        a_pipeline(
            "n AS id, int(3 - n) AS part",
            "id BIGINT, part INT",
            {"kafka": ("a",), "partition_column": "part"},
        ),
        "part is negative",
    ),
    "a bad value": (a_pipeline("1 / (n - 3) AS x", "x DOUBLE", FUNCTION), "DIVIDE_BY_ZERO"),
    "several rows": (
        a_pipeline("", "m BIGINT, twice BIGINT", FUNCTION, "exploded"),
        "a record has several rows",
    ),
    "another record": (
        a_pipeline("", "m BIGINT, twice BIGINT", {"kafka": ("a",)}, "elsewhere"),
        "_kafka is not that of a record of this batch",
    ),
}


@pytest.mark.takes_long("another topic", "a negative partition", "several rows", "another record")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_against_the_rules_is_told_before_anything_is_sent(bench: Bench, name: str) -> None:
    pipeline, words = REFUSED[name]
    with pytest.raises(TransformFailed) as failed:
        sent(bench, pipeline)
    assert words in str(failed.value)
    assert str(failed.value).startswith(f"RM506 p {pipeline.made_by} on t-0[0,5), t-1[0,5): ")


def test_where_the_partition_is_null_the_key_decides(bench: Bench) -> None:
    place = {"kafka": ("a",), "partition_column": "part", "message_key": ("id",)}
    pipeline = a_pipeline("n AS id, int(NULL) AS part", "id BIGINT, part INT", place)
    assert len(sent(bench, pipeline)) == 10
