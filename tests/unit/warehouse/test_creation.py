"""A table that is missing is made once, whoever else makes it at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.spark.tables import Address
from rivermouth.warehouse.ports import Attempts
from rivermouth.warehouse.tables import MadeOnce, make_table
from tests.threads import at_once

pytestmark = pytest.mark.unit

TABLE, OTHER = Address(path="/lake/bronze/bids_quarantine"), Address(path="/lake/bronze/x")
AT_ONCE = Attempts(lambda: iter((0.0, 0.0)), lambda _: None)


class Session:
    """Spark, which makes one table at a time: whoever comes into that is told of a conflict."""

    def __init__(self, faults: Sequence[str] = ()) -> None:
        self.statements: list[str] = []
        self._faults = [*faults]
        self._busy = threading.Lock()

    def sql(self, statement: str) -> None:
        self.statements.append(statement)
        if self._faults:
            raise PySparkException(self._faults.pop(0))
        if not self._busy.acquire(blocking=False):
            raise PySparkException("[DELTA_PROTOCOL_CHANGED] ProtocolChangedException")
        try:
            time.sleep(0.02)
        finally:
            self._busy.release()


def spark(session: Session) -> SparkSession:
    return cast(SparkSession, session)


def test_pipelines_of_one_run_make_their_common_side_table_once() -> None:
    session, tables = Session(), MadeOnce()

    def make() -> None:
        tables.make(spark(session), TABLE, "id BIGINT", Attempts(lambda: iter(())))

    at_once(*[make] * 8)

    assert len(session.statements) == 1
    tables.make(spark(session), OTHER, "id BIGINT")
    assert len(session.statements) == 2


@pytest.mark.parametrize(
    "told",
    [
        "[DELTA_PROTOCOL_CHANGED] by another",
        "[DELTA_METADATA_CHANGED] by another",
        "[DELTA_CONCURRENT_APPEND] by another",
        "io.delta.exceptions.ConcurrentWriteException: by another",
        "[DELTA_TABLE_ALREADY_EXISTS] it is there SQLSTATE: 42P07",
        "[TABLE_OR_VIEW_ALREADY_EXISTS] it is there",
        "org.apache.hadoop.fs.FileAlreadyExistsException: 0.json",
    ],
)
def test_a_conflict_with_another_process_is_tried_again(told: str) -> None:
    session = Session([told, told])
    make_table(spark(session), TABLE, "id BIGINT", attempts=AT_ONCE)
    assert len(session.statements) == 3


def test_a_conflict_that_stays_is_told() -> None:
    session, tables = Session(["[DELTA_PROTOCOL_CHANGED] by another"] * 3), MadeOnce()
    with pytest.raises(PySparkException, match="DELTA_PROTOCOL_CHANGED"):
        tables.make(spark(session), TABLE, "id BIGINT", AT_ONCE)
    tables.make(spark(session), TABLE, "id BIGINT")
    assert len(session.statements) == 4, "what was not made is made by the next one"


def test_another_fault_is_told_at_once() -> None:
    session = Session(["[PARSE_SYNTAX_ERROR] no such type"])
    with pytest.raises(PySparkException):
        make_table(spark(session), TABLE, "id WHAT", attempts=AT_ONCE)
    assert len(session.statements) == 1
