"""Shared by all tests: the broker fixture that users get too, how examples are drawn, which tests
are for ``make test-all`` alone, how workers share them, and what a run may cost and leave.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import waits
from tests.budget import Cost, add, prepare
from tests.slices import SLICES, in_slice
from tests.stores.servers import STORES
from tests.workers import rank, share

pytest_plugins = ["rivermouth.testing"]

# Every JVM of a test ends before the optimizing compiler has paid for itself. Without that
# compiler the code cache is 48 MB, too small for Hive and Connect.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m"
# ``make test`` evaluates the expressions of its many small queries. To compile each of them to
# Java, as every session does that a user starts, takes a sixth of the time; ``make test-all`` does.
_EVALUATED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
_FOLDER = pytest.StashKey[Path]()
_COST = pytest.StashKey[Cost]()

# A busy machine makes any example slow; how fast things are is what benchmarks tell. And what a
# commit is told must come of the commit: the same examples each time; campaigns draw new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slice",
        type=int,
        choices=range(SLICES),
        help="Only one slice of what test-all has beyond test.",
    )
    parser.addoption(
        "--store",
        choices=STORES,
        default="s3proxy",
        help="The object store that the tests of stores run over.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Every JVM that a test starts, however it does, takes these options.

    A worker inherits the environment. What tests and their processes leave is in one folder.
    """
    waits.shorten()
    if hasattr(config, "workerinput"):
        return
    add("JDK_JAVA_OPTIONS", f"{_BRIEF} {_EVALUATED}" if _in_short(config) else _BRIEF)
    folder = config.stash[_FOLDER] = _new_folder()
    config.stash[_COST] = Cost(folder)
    prepare(folder)
    tempfile.tempdir = None  # it was asked for before
    config.option.basetemp = config.option.basetemp or folder / "t"


def _new_folder() -> Path:
    """A folder with a short path: sockets lie in it, whose paths may have 103 bytes."""
    while True:
        folder = Path(tempfile.gettempdir()) / f"rm{secrets.token_hex(2)}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


def _in_short(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not thorough")


def pytest_itemcollected(item: pytest.Item) -> None:
    """A case that its test does not count among the short ones, or names as one that takes long,
    is for ``make test-all`` alone; so is one that needs the Databricks CLI, which is built first.
    """
    if "databricks" in getattr(item, "fixturenames", ()):
        item.add_marker("thorough")
    for mark in item.iter_markers("short"):
        names, short = mark.args
        assert isinstance(item, pytest.Function)
        if tuple(item.callspec.params[name] for name in names) not in short:
            item.add_marker("thorough")
    for mark in item.iter_markers("takes_long"):
        assert isinstance(item, pytest.Function)
        if item.callspec.id in mark.args:
            item.add_marker("thorough")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers begin with what takes long; one alone keeps the order of the files."""
    if config.option.slice is not None:
        beyond = [each for each in items if each.get_closest_marker("thorough")]
        chosen = in_slice(config.option.slice, {share(each.nodeid) for each in beyond})
        # What all kills of a file have left is proved by its last tests: such a file is whole.
        kinds = ("thorough", "kill")
        items[:] = [
            each
            for each in items
            if share(each.nodeid) in chosen and any(map(each.get_closest_marker, kinds))
        ]
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


class _Reports:
    """Notes what each test took."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._cost.seconds[report.nodeid] = report.duration


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Reports(session.config.stash[_COST]))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """``make test`` fails where it costs more than it may."""
    config = session.config
    if not hasattr(config, "workerinput") and _in_short(config) and any(_excess(config)):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _excess(config: pytest.Config) -> Iterator[str]:
    return config.stash[_COST].excess()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    terminalreporter.section("cost")
    for line in config.stash[_COST].lines():
        terminalreporter.line(line)
    if _in_short(config):
        for line in _excess(config):
            terminalreporter.line(f"TOO MUCH: {line}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Nothing is left behind, unless somebody has to look at what failed."""
    folder = config.stash.get(_FOLDER, None)
    if folder is not None and not os.environ.get("KEEP"):
        shutil.rmtree(folder, ignore_errors=True)
