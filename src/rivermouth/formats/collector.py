"""What Spark's Python workers spare the garbage collector.

Such a worker collects garbage after each task, and looks at all objects for that: those of the
modules alone are 100,000, for 40 ms. They stay for the life of the worker.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@cache
def spare_what_is_loaded() -> None:
    """Let the collector pass over what is there now; once for each process.

    To be called at the end of a task: all that tasks need is loaded then.
    """
    gc.freeze()


@contextmanager
def without_collector() -> Iterator[None]:
    """A block that makes many objects, none of which refer to each other in a circle.

    To look for such circles is a fourth of what it takes to make them. Where two threads are in
    such a block, the collector is on again when the first of them leaves it.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
