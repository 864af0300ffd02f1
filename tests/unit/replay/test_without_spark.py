"""The package is imported at once, and only what reads records into Spark needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

BLOCKED = "import sys; sys.modules.update(dict.fromkeys(('pyspark', 'delta')))"


def names_after(code: str) -> set[str]:
    """The modules that are loaded where Spark is not installed and ``code`` has run."""
    ask = f"{BLOCKED}; {code}; print(*(name for name, it in sys.modules.items() if it))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {*done.stdout.split()}


def test_importing_the_package_loads_none_of_its_parts() -> None:
    loaded = names_after("import rivermouth")
    assert {name for name in loaded if name.startswith("rivermouth")} == {"rivermouth"}


@pytest.mark.parametrize(
    "name",
    [
        "OffsetRange",
        "ReadableRange",
        "RecordedRanges",
        "TopicPartition",
        "ranges",
        "ranges_between",
        "readable",
    ],
)
def test_a_range_is_a_value_where_spark_is_not_installed(name: str) -> None:
    assert "rivermouth.protocol.offsets" in names_after(f"from rivermouth import {name}")
