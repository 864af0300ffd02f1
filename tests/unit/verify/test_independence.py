"""The proof shares no code with what it proves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rivermouth

pytestmark = pytest.mark.unit

ROOM = Path(rivermouth.__file__).parent / "verify"
# How a broker is reached (``clients``) is no part of what is proved.
ALLOWED = (
    "rivermouth.kafka.options",
    "rivermouth.config",
    "rivermouth.errors",
    "rivermouth.verify",
)


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: a relative import hides where it leads"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.name)
def test_verify_imports_only_configuration_and_errors_of_the_package(path: Path) -> None:
    ours = {name for name in imported(path) if name.split(".")[0] in ("rivermouth", "pyspark")}
    stray = {name for name in ours if not any(_within(name, room) for room in ALLOWED)}
    assert stray == set()


def _within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")
