"""Changes that hold more than the driver takes (``spark.driver.maxResultSize``), and changes of a
table that is larger than what Spark broadcasts."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.errors import UpsertUnsupported
from rivermouth.protocol.commits import CommitPlan, Outcome
from rivermouth.spark.errors import said
from rivermouth.spark.session import separate
from rivermouth.write.landings import folding
from tests.spark.batch_table import BatchTable, keyed_table
from tests.spark.conftest import Bench, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDS = 2_400
TEXT_BYTES = 8_000
LIMIT = "12m"
"""Less than the texts hold, more than Spark broadcasts without being told to (10 MB)."""

_SETTING = "spark.driver.maxResultSize"
_DICE = random.Random(4)
TEXTS = [base64.b64encode(_DICE.randbytes(TEXT_BYTES * 3 // 4)).decode() for _ in range(RECORDS)]
"""They do not get smaller when they are packed."""


@contextmanager
def driver_takes(session: SparkSession, limit: str) -> Iterator[None]:
    """Spark's scheduler reads the limit anew for each stage, from the conf of its context."""
    conf = session.sparkContext._jsc.sc().conf()
    assert session.conf.get(_SETTING, None) is None, "it would have to be put back"
    conf.set(_SETTING, limit)
    try:
        yield
    finally:
        conf.remove(_SETTING)  # a session that is made later copies what is set


def test_no_other_session_sees_the_limit(bench: Bench) -> None:
    with driver_takes(bench.spark, LIMIT):
        assert separate(bench.spark).conf.get(_SETTING, None) == LIMIT
    assert separate(bench.spark).conf.get(_SETTING, None) is None


@pytest.fixture
def too_large(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said of each write that broadcast too much."""
    told: list[str] = []

    def noted(fault: Exception) -> bool:
        told.append(said(fault))
        return judge(fault)

    judge = folding.too_large
    monkeypatch.setattr(folding, "too_large", noted)
    return told


def by(key: str) -> Pipeline:
    return a_pipeline(key=None, keys=(key,))


def land_batches(table: BatchTable, batches: int) -> list[CommitPlan]:
    """Land that many batches with an order for each text; ``rank`` is the number of the batch."""
    return [
        table.land(
            [
                (None, order(number, text, batch + 1), 0, batch * RECORDS + number)
                for number, text in enumerate(TEXTS)
            ]
        )
        for batch in range(batches)
    ]


def order(number: int, text: str, rank: int) -> bytes:
    return json.dumps({"order_id": number, "status": text, "rank": rank}).encode()


def ranks(table: BatchTable) -> dict[int, int]:
    """The rank of each order, as Spark reads it."""
    rows = table.sql("SELECT order_id, rank FROM {table}")
    found = {row["order_id"]: row["rank"] for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "key", "vectors"),
    [
        ("MERGE", "status", False),  # a MERGE broadcasts the key columns alone
        ("replaceUsing", "order_id", False),
        ("replaceUsing", "status", True),
    ],
    ids=["MERGE, large keys", "replaceUsing, large rows", "replaceUsing, large keys"],
)
def test_changes_too_large_for_a_broadcast_are_written_without_one(
    bench: Bench, too_large: list[str], way: str, key: str, vectors: bool
) -> None:
    table = keyed_table(bench, by(key), way, vectors=vectors)

    with driver_takes(bench.spark, LIMIT):
        plans = land_batches(table, batches=3)

    assert [table.outcome(plan) for plan in plans] == [Outcome.COMMITTED] * 3
    assert len(too_large) == 1, "only the first batch tries"
    assert _SETTING in too_large[0]
    assert ranks(table) == dict.fromkeys(range(RECORDS), 3)


@pytest.mark.thorough
def test_keys_too_large_for_a_broadcast_without_deletion_vectors_say_what_to_do(
    bench: Bench,
) -> None:
    table = keyed_table(bench, by("status"), "replaceUsing")
    refused = pytest.raises(UpsertUnsupported, match="enableDeletionVectors")
    with driver_takes(bench.spark, LIMIT), refused:
        land_batches(table, batches=2)

    assert ranks(table) == dict.fromkeys(range(RECORDS), 1), "nothing of the second is written"


LARGE = 300_000


@pytest.mark.thorough
@pytest.mark.parametrize("vectors", [False, True], ids=["files written anew", "vectors"])
@pytest.mark.parametrize("most", [folding.RECORDS_MAX, 0], ids=["few", "many"])
def test_changes_of_a_large_table_are_written_by_replace_using(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most: int, vectors: bool
) -> None:
    """Spark takes the rows to be for as many as changes times rows of the table."""
    monkeypatch.setattr(folding, "RECORDS_MAX", most)
    table = keyed_table(bench, by("order_id"), "replaceUsing", vectors=vectors)
    bench.spark.range(LARGE).selectExpr(
        "id AS order_id",
        "md5(CAST(id AS STRING)) AS status",
        "1 AS rank",
        "named_struct('topic', 't', 'partition', 0, 'offset', id, "
        "'timestamp', current_timestamp()) AS _kafka",
    ).write.format("delta").mode("append").save(str(bench.folder / "orders"))

    table.land([(None, order(number, "x", 2), 0, number) for number in range(50)])

    assert ranks(table) == {number: 2 if number < 50 else 1 for number in range(LARGE)}
