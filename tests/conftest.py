"""Shared by all tests: the broker fixture that users get too, how examples are drawn, which tests
are for ``make test-all`` alone, and how workers share them."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests.workers import rank, share

pytest_plugins = ["rivermouth.testing"]

# Every JVM of a test ends before the optimizing compiler has paid for itself. Without that
# compiler the code cache is 48 MB, too small for Hive and Connect.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m"
# ``make test`` evaluates the expressions of its many small queries. To compile each of them to
# Java, as every session does that a user starts, takes a sixth of the time; ``make test-all`` does.
_EVALUATED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"

# A busy machine makes any example slow; how fast things are is what benchmarks tell. And what a
# commit is told must come of the commit: the same examples each time; campaigns draw new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Every JVM that a test starts, however it does, takes these options."""
    in_short = config.option.markexpr == "not thorough"
    options = f"{_BRIEF} {_EVALUATED}" if in_short else _BRIEF
    given = os.environ.get("JDK_JAVA_OPTIONS", "")
    if options not in given:  # a worker inherits them
        os.environ["JDK_JAVA_OPTIONS"] = f"{options} {given}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """A case that its test does not count among the short ones is for ``make test-all`` alone."""
    for mark in item.iter_markers("short"):
        names, short = mark.args
        assert isinstance(item, pytest.Function)
        if tuple(item.callspec.params[name] for name in names) not in short:
            item.add_marker("thorough")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with what takes long; one alone keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """What hands out the tests where workers were asked for."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = share
    return scheduler
