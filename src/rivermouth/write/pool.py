"""Connections of a user's own function: one for each process that calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeVar, cast

Connection = TypeVar("Connection")

_known: dict[tuple[int, Hashable], object] = {}
_making = Lock()


def pooled(key: Hashable, make: Callable[[], Connection]) -> Connection:
    """What ``make`` returned in this process under this key; it is called once.

    For a connection in a function of ``target.foreach_partition``: Spark keeps the processes that
    call it, from batch to batch. A connection that has broken is the function's to replace.
    """
    here = (os.getpid(), key)  # a process that was forked must not use its parent's connection
    with _making:
        if here not in _known:
            _known[here] = make()
        return cast("Connection", _known[here])
