"""The checker shares no code with what it checks, nor with Spark or deltalake."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOM = Path(__file__).parent
CHECKER = sorted({*ROOM.glob("*.py")} - {*ROOM.glob("test_*.py")})


def imported(file: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("file", CHECKER, ids=lambda each: each.name)
def test_the_checker_imports_nothing_of_what_it_checks(file: Path) -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "pyarrow", "pyroaring", "confluent_kafka"}
    strange = {
        name
        for name in imported(file)
        if name.split(".")[0] not in allowed and not name.startswith("tests.faults.checker")
    }
    assert strange == set()


def test_the_checker_starts_where_product_spark_and_deltalake_are_not_installed() -> None:
    blocked = (
        "import sys; sys.modules.update(dict.fromkeys(['rivermouth', 'pyspark', 'deltalake']))"
    )
    command = f"{blocked}; import tests.faults.checker.check, tests.faults.checker.reader"
    subprocess.run([sys.executable, "-c", command], check=True, cwd=ROOM.parents[2])
