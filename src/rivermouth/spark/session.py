"""The session of a run, sessions beside it, and the plans that one makes of a DataFrame."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PATH = "PYTHONPATH"

POOL = "spark.scheduler.pool"
"""The property of a thread that says in which pool its jobs are scheduled."""


class Spark:
    """The session of a run, which is started when it is first asked for: that takes seconds.

    What fails at the start is raised to each who asks; the next one tries again.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._starting, self._changing = threading.Lock(), threading.Lock()
        self._session: SparkSession | None = None
        self._waiting: list[Callable[[SparkSession], object]] = []

    @staticmethod
    def of(session: SparkSession | Spark) -> Spark:
        """That of a session that runs already; ``session`` itself where it is one of ours."""
        if isinstance(session, Spark):
            return session
        found = Spark(lambda: session)
        found._session = session
        return found

    @property
    def started(self) -> SparkSession | None:
        """The session; None: nobody has needed it yet."""
        return self._session

    def session(self) -> SparkSession:
        """The session. All that waits for it (``once_started``) is done before it is given.

        Where some of that fails, the rest is done, and the first fault is raised once.
        """
        with self._starting:
            if self._session is None:
                session = self._start()
                with self._changing:
                    self._session, waiting = session, self._waiting
                faults = list[Exception]()
                for act in waiting:
                    try:
                        act(session)
                    except Exception as fault:  # the others are of other pipelines
                        faults.append(fault)
                if faults:
                    raise faults[0]
            return self._session

    def once_started(self, act: Callable[[SparkSession], object]) -> None:
        """Do something before the session is used: now, where it runs already."""
        with self._changing:
            session = self._session
            if session is None:
                self._waiting.append(act)
        if session is not None:
            act(session)


def separate(session: SparkSession) -> SparkSession:
    """A session with the settings that ``session`` has now, and with none that it gets later.

    The other way round as well: neither sees the settings and temporary views of the other one.
    Not for Spark Connect.
    """
    own = session.newSession()
    for name, value in session.conf.getAll.items():
        if own.conf.get(name, None) != value:  # it was set since Spark began
            own.conf.set(name, value)
    return own


def import_from(session: SparkSession, folder: str) -> None:
    """Let the Python workers of this machine import from ``folder``, also those of a session that
    runs already: it gives each function the environment of its workers. Not for Spark Connect.
    """
    environ = session.sparkContext.environment
    known = [each for each in environ.get(_PATH, "").split(os.pathsep) if each]
    environ[_PATH] = os.pathsep.join(dict.fromkeys([*known, folder]))


def same_pool(session: SparkSession) -> Callable[[], object]:
    """What gives another thread the scheduling pool of the one that asks. Not for Spark Connect."""
    context = session.sparkContext
    pool = context.getLocalProperty(POOL)
    return partial(context.setLocalProperty, POOL, pool) if pool else lambda: None


_BRANCHES = re.compile(r"^[\s:+\-]*")
_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n[^\n]*\n(.*?)\n== Optimized", re.DOTALL)


def analyzed(rows: DataFrame) -> Sequence[str]:
    """The lines of the analyzed plan from the top on, a node each, without the tree's branches.

    Nothing is evaluated. Empty where Spark shows none.
    """
    return nodes(_analyzed(rows))


def nodes(text: str) -> Sequence[str]:
    """The nodes of a plan's text, a line each; a line break in a literal ends none of them."""
    found: list[str] = []
    for line in text.split("\n"):
        inside = found and line[:1] not in (" ", ":", "+", "-")
        if inside:
            found[-1] += line
        elif line.strip():
            found.append(_BRANCHES.sub("", line))
    return found


def _analyzed(rows: Any) -> str:
    jvm = getattr(rows, "_jdf", None)
    if jvm is not None:
        return str(jvm.queryExecution().analyzed().toString())
    found = _ANALYZED.search(rows._explain_string(mode="extended"))
    return found[1] if found else ""


T = TypeVar("T")


def balanced(combine: Callable[[T, T], T], items: Sequence[T]) -> T:
    """``items`` in their order, two at a time; at least one. As deep as their number has bits."""
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return combine(balanced(combine, items[:half]), balanced(combine, items[half:]))
