"""Which tests a worker gets together."""

from __future__ import annotations

import pytest

from tests.workers import share

pytestmark = pytest.mark.unit

KILLS, SINKS = "tests/kafka/test_kills.py", "tests/kafka/test_sink_kills.py"


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/unit/test_workers.py::test_a[x]", "tests/unit/test_workers.py"),
        ("tests/connect/test_kills.py::test_a[connect-append-P1]", "tests/connect/"),
        (f"{KILLS}::test_killed[append-P11]", f"{KILLS} append"),
        (f"{KILLS}::test_killed[append-data files written]", f"{KILLS} append"),
        (f"{KILLS}::test_after[append]", f"{KILLS} append"),
        (f"{SINKS}::test_killed[at-least-once-first record in the sink]", f"{SINKS} at-least-once"),
        (f"{SINKS}::test_by_spark[P14]", f"{SINKS} "),
        (f"{SINKS}::test_by_spark_after", f"{SINKS} "),
    ],
)
def test_a_file_a_folder_or_a_lake_belongs_to_one_worker(nodeid: str, together: str) -> None:
    assert share(nodeid) == together
