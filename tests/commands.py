"""The commands of the product, and scripts, in this process: most of what one costs is a JVM and a
session for a run of a second. They get the session of the tests, and leave it running.

A process of its own is only for what is about the process: kills, signals, output to a terminal.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.cli.app import main
from rivermouth.config import user_modules
from rivermouth.local import session as local_session
from rivermouth.run import starting


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def command(
    *words: str,
    spark: SparkSession | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    answer: str = "",
) -> Done:
    """``rivermouth WORDS…``, as in the folder, with ``environ`` over this process's environment.

    ``spark`` is the session that it gets where it starts one; without it such a command starts its
    own, which a test must not let happen. ``answer`` is what somebody types.
    """
    return _done(lambda: main(words), spark, environ, folder, answer)


def script(
    code: str,
    *,
    spark: SparkSession,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Done:
    """A script of Python, as in the folder. Where it starts Spark, it gets ``spark``.

    What it raises, it raises here.
    """
    return _done(lambda: exec(code, {"__name__": "__main__"}), spark, environ, folder)


def _done(
    do: Callable[[], object],
    spark: SparkSession | None,
    environ: Mapping[str, str] | None,
    folder: Path | None,
    answer: str = "",
) -> Done:
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in {"NO_COLOR": "1", **(environ or {})}.items():
            patch.setenv(name, value)
        if folder is not None:
            patch.chdir(folder)
        patch.setattr(sys, "stdin", io.StringIO(answer))
        patch.setattr(starting, "spark_runs", lambda: False)
        patch.setattr(local_session, "start_session", lambda *_, **__: _given(spark))
        patch.setattr(local_session, "ending", nullcontext)
        stack.enter_context(_same_signals())
        stack.enter_context(_same_imports(patch))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            do()
        except SystemExit as ended:
            code = ended.code
    return Done(code if isinstance(code, int) else 1, out.getvalue(), err.getvalue())


def _given(spark: SparkSession | None) -> SparkSession:
    assert spark is not None, "the command starts Spark: give it the session of the tests"
    return spark


@contextmanager
def _same_signals() -> Iterator[None]:
    """Commands handle signals until their process ends; here only until the block does."""
    handled = (signal.SIGTERM, signal.SIGINT)
    before = {each: signal.getsignal(each) for each in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _same_imports(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is imported from beside a configuration file is forgotten, as the process would end."""
    before = {*sys.path}
    patch.setattr(sys, "path", [*sys.path])
    patch.setattr(user_modules, "_TAKEN", {})
    try:
        yield
    finally:
        added = {each for each in sys.path if each not in before}
        for name, module in [*sys.modules.items()]:
            file = getattr(module, "__file__", None)
            if file and os.path.dirname(file) in added:
                del sys.modules[name]


def scratch_in(folder: Path) -> dict[str, str]:
    """The environment in which a command keeps its scratch files in the folder."""
    return {"RIVERMOUTH_SCRATCH": os.fspath(folder)}
