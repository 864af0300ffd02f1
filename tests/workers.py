"""How several workers share the tests, ``pytest -n 2``: a file belongs to one of them, and so does
a folder whose tests share a server; what takes long comes first, so that all end at once. Of a long
file of kills each lake belongs to one.

Each worker has a broker and a Spark session of its own. Ports are free ones, folders are those of
pytest, and topics lie on the worker's own broker: workers meet nowhere.
"""

from __future__ import annotations

import re

TOGETHER = ("tests/connect/",)
LONGEST_FIRST = (
    "tests/connect/",
    "tests/bundle/test_own_bundle.py",
    "tests/kafka/test_kills.py",
    "tests/logins/",
    "tests/faults/",
    "tests/kafka/",
    "tests/bundle/",
    "tests/spark/",
    "tests/warehouse/",
)


APART = ("tests/kafka/test_kills.py", "tests/kafka/test_sink_kills.py")
"""Files whose tests are named by a lake, and by the point of a kill in it."""
_POINT = re.compile(r"(^|-)(P\d+|data files written|commit visible|first record in the sink)$")


def share(nodeid: str) -> str:
    """What a worker gets as a whole: the file of a test, its folder in ``TOGETHER``, or its lake in
    a file of ``APART``.
    """
    file, _, name = nodeid.partition("::")
    if file in APART:
        return f"{file} {_POINT.sub('', name.partition('[')[2].rstrip(']'))}"
    return next((each for each in TOGETHER if nodeid.startswith(each)), file)


def rank(nodeid: str) -> int:
    """Where a test belongs among those of others: the lower, the earlier."""
    found = (n for n, each in enumerate(LONGEST_FIRST) if nodeid.startswith(each))
    return next(found, len(LONGEST_FIRST))
