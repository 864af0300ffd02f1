"""A session is stopped with its block; a JVM that is gone does not hide what the run said."""

from __future__ import annotations

from typing import cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from rivermouth.local.session import ending

pytestmark = pytest.mark.unit


class Session:
    def __init__(self, fault: Exception | None = None) -> None:
        self.stops = 0
        self._fault = fault

    def stop(self) -> None:
        self.stops += 1
        if self._fault is not None:
            raise self._fault


@pytest.mark.parametrize(
    "fault",
    [
        ConnectionRefusedError(111, "Connection refused"),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("SparkSession does not exist in the JVM"),
        None,
    ],
    ids=repr,
)
def test_a_jvm_that_is_gone_has_ended_already(fault: Exception | None) -> None:
    session = Session(fault)
    with ending(cast(SparkSession, session)):
        assert session.stops == 0
    assert session.stops == 1


def test_what_the_block_raises_is_told() -> None:
    session = Session(ConnectionRefusedError(111, "Connection refused"))
    with pytest.raises(ValueError, match="of the block"), ending(cast(SparkSession, session)):
        raise ValueError("of the block")
