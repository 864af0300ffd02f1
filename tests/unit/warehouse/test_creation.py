"""A table that is missing is made once, whoever else makes it at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.spark.tables import Address
from rivermouth.warehouse.ports import Attempts
from rivermouth.warehouse.tables import make_table
from tests.threads import at_once

pytestmark = pytest.mark.unit

TABLE = Address(path="/lake/bronze/bids_quarantine")
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


def test_pipelines_of_one_run_that_make_their_common_side_table_at_once_try_again() -> None:
    session, pauses = Session(), Attempts(lambda: repeat(0.01))

    at_once(*[partial(make_table, spark(session), TABLE, "id BIGINT", attempts=pauses)] * 4)

    assert len(session.statements) >= 4


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
    session = Session(["[DELTA_PROTOCOL_CHANGED] by another"] * 3)
    with pytest.raises(PySparkException, match="DELTA_PROTOCOL_CHANGED"):
        make_table(spark(session), TABLE, "id BIGINT", attempts=AT_ONCE)
    assert len(session.statements) == 3


def test_another_fault_is_told_at_once() -> None:
    session = Session(["[PARSE_SYNTAX_ERROR] no such type"])
    with pytest.raises(PySparkException):
        make_table(spark(session), TABLE, "id WHAT", attempts=AT_ONCE)
    assert len(session.statements) == 1
