"""What Spark's Python workers spare the garbage collector.

Such a worker collects garbage after each task, and looks at all objects for that: those of the
modules alone are 100,000, for 40 ms. They stay for the life of the worker.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_what_is_loaded() -> None:
    """Let the collector pass over what is there now; once for each process.

    To be called at the end of a task: all that tasks need is loaded then.
    """
    gc.freeze()
