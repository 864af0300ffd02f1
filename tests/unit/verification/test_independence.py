"""The proof shares no code with what it proves, and its own folders depend in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rivermouth
from rivermouth.config.formats import FORMATS, SENT
from rivermouth.config.registry import SHAPES, resolve

pytestmark = pytest.mark.unit

PACKAGE = Path(rivermouth.__file__).parent
ROOM = PACKAGE / "verification"
MODULES = sorted(ROOM.rglob("*.py"))
# How a broker and a store are reached (``kafka.options``, ``storage.client`` and what they need) is
# no part of what is proved.
ALLOWED = (
    "rivermouth.storage.client",
    "rivermouth.storage.faults",
    "rivermouth.storage.lake",
    "rivermouth.kafka.options",
    "rivermouth.kafka.login",
    "rivermouth.config",
    "rivermouth.errors",
    "rivermouth.verification",
)
FLOORS = (
    "proved",
    "result",
    "ledger",
    "formats",
    "tables",
    "kafka",
    "subject",
    "proofs",
    "pipeline",
)
"""Each may import from those before it; ``verify`` itself from all."""


def short(path: Path) -> str:
    return path.relative_to(ROOM).as_posix()


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{short(path)}: a relative import hides where it leads"
            names.add(node.module or "")
    return names


def _within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def test_all_folders_are_looked_at() -> None:
    assert {path.parent.name for path in MODULES} > {"ledger", "tables", "kafka", "proofs"}


IMPORTS = [(path, name) for path in MODULES for name in sorted(imported(path))]


def test_verify_imports_nothing_of_the_package_but_what_is_allowed() -> None:
    ours = [each for each in IMPORTS if each[1].split(".")[0] in ("rivermouth", "pyspark")]
    stray = [each for each in ours if not any(_within(each[1], room) for room in ALLOWED)]
    assert stray == []


def test_a_folder_imports_only_from_the_floors_below_it() -> None:
    inside = [
        (FLOORS.index(path.relative_to(ROOM).parts[0]), FLOORS.index(name.split(".")[2]), path)
        for path, name in IMPORTS
        if path.parent != ROOM and _within(name, "rivermouth.verification")
    ]
    assert [short(path) for floor, wanted, path in inside if wanted > floor] == []


def test_a_proof_knows_no_format() -> None:
    proofs = [name for path, name in IMPORTS if path.parent.name == "proofs"]
    formats = {name for name in proofs if _within(name, "rivermouth.verification.formats")}
    assert formats <= {"rivermouth.verification.formats.reader"}


def test_verify_runs_without_spark_and_loads_nothing_of_the_writer() -> None:
    names = [
        ".".join(("rivermouth", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in MODULES
    ]
    code = f"""
import importlib, sys
sys.modules.update(dict.fromkeys(("pyspark", "delta")))
for name in {names!r}:
    importlib.import_module(name.removesuffix(".__init__"))
print(*sorted(name for name in sys.modules if name.startswith("rivermouth.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {
        name
        for name in done.stdout.split()
        if name not in ("rivermouth.kafka", "rivermouth.storage")
    }
    assert {name for name in loaded if not any(_within(name, room) for room in ALLOWED)} == set()
    assert len(loaded) > len(names)


def test_what_is_registered_for_verify_exists_and_is_its_own() -> None:
    references = [each.reader for each in FORMATS.by_name.values()]
    references += [each.reader for each in FORMATS.keys.values()]
    references += [SENT]
    references += [each.proof for each in SHAPES.by_name.values()]
    for reference in references:
        assert reference.startswith("rivermouth.verification."), reference
        assert callable(resolve(reference)), reference
