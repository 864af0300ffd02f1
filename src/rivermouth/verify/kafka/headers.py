"""The headers of a record, as far as the client can name them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

from confluent_kafka import Message

_HEADERS = methodcaller("headers")
"""``message.headers()``, where Python checks the result. The client gives one and leaves an error
behind, which in a plain call may come up at any later place.
"""


def headers_of(message: Message) -> Sequence[tuple[str, bytes | None]] | None:
    """Pairs of name and value, in order; empty where there are none.

    None where a name is not UTF-8: Spark's client replaces such bytes, this one gives no header at
    all.
    """
    try:
        found: Any = _HEADERS(message)
    except (UnicodeDecodeError, SystemError):
        return None
    return found or ()
