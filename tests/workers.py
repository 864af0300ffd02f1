"""How several workers share the tests, ``pytest -n 2``: a file belongs to one of them, and so does
a folder whose tests share a server; what takes long comes first, so that all end at once.

Each worker has a broker and a Spark session of its own. Ports are free ones, folders are those of
pytest, and topics lie on the worker's own broker: workers meet nowhere.
"""

from __future__ import annotations

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


def share(nodeid: str) -> str:
    """What a worker gets as a whole: the file of a test, or its folder in ``TOGETHER``."""
    folders = (each for each in TOGETHER if nodeid.startswith(each))
    return next(folders, nodeid.partition("::")[0])


def rank(nodeid: str) -> int:
    """Where a test belongs among those of others: the lower, the earlier."""
    found = (n for n, each in enumerate(LONGEST_FIRST) if nodeid.startswith(each))
    return next(found, len(LONGEST_FIRST))
