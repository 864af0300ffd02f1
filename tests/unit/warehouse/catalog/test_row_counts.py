"""Counting the rows of commits in a catalog, where the answer does not come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.spark.tables import Address
from rivermouth.warehouse.catalog import warehouse
from rivermouth.warehouse.catalog.warehouse import with_counts
from tests.builders import entry_after, span

pytestmark = pytest.mark.unit

ADDRESS = Address(name=("main", "silver", "orders"))


class Failing:
    """A session in which every question fails with ``fault``."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    @property
    def read(self) -> Failing:
        return self

    def table(self, name: str) -> Failing:
        return self

    def createDataFrame(self, rows: object, columns: str) -> Failing:
        return self

    def same(self, *_: object) -> Failing:
        return self

    hint = where = select = join = groupBy = count = same

    def collect(self) -> None:
        raise self._fault


class Anything:
    """Stands for any column: built without a session, asked for nothing."""

    def __getattr__(self, name: str) -> Callable[..., Anything]:
        return lambda *_: self

    def _with(self, other: object) -> Anything:
        return self

    __and__ = __rand__ = __ge__ = __lt__ = _with


@pytest.mark.parametrize(
    "fault", [PySparkException("[INTERNAL_ERROR] no"), Py4JNetworkError()], ids=["Spark", "JVM"]
)
def test_rows_that_cannot_be_counted_after_a_commit_do_not_hide_that_it_stands(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse, "F", Anything())
    session = cast(SparkSession, Failing(fault))
    uncounted = Recorded(1, 0, replace(entry_after(None, span(0, 5)), rows=None))
    with pytest.raises(ProjectionFailed, match="the commits stand") as caught:
        with_counts(session, ADDRESS, [uncounted])
    assert caught.value.found
    assert "Nothing of this batch" not in str(caught.value)


def test_an_entry_that_has_its_counts_asks_nobody() -> None:
    session = cast(SparkSession, Failing(PySparkException("[INTERNAL_ERROR] no")))
    told = Recorded(1, 0, entry_after(None, span(0, 5)))
    assert with_counts(session, ADDRESS, [told]) == [told]
