"""Taking bad records out of what a task decodes, where it goes on with the good ones.

Imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

NO_KEY = "RM605"
"""The code of a record without a value in a column of the key."""


class OpenSieve(Protocol):
    """The sieve of one task."""

    def good(
        self, raw: pa.RecordBatch, code: pa.StringArray, reason: pa.StringArray
    ) -> pa.BooleanArray | None:
        """Which of Kafka's rows are good; None: all. The others are set apart.

        ``code`` says why a record is bad, null for a good one; ``reason`` what that does not tell.
        """


class Sieve(Protocol):
    """Sets bad records apart, and counts all. It can be pickled."""

    def opened(self) -> AbstractContextManager[OpenSieve]:
        """For one task: what it told counts once the block has ended without an error."""


@contextmanager
def opened(sieve: Sieve | None) -> Iterator[OpenSieve | None]:
    """The sieve of one task, if there is one."""
    if sieve is None:
        yield None
        return
    with sieve.opened() as found:
        yield found


def without_key(code: pa.StringArray, key: pa.Array, there: pa.BooleanArray) -> pa.StringArray:
    """The codes, with ``NO_KEY`` where a record had none and is ``there``, without its ``key``."""
    if not key.null_count:
        return code
    none = pa.scalar(None, pa.string())
    return pc.coalesce(code, pc.if_else(pc.and_(there, key.is_null()), NO_KEY, none))
