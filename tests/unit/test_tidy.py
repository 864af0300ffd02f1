"""The rules of the house, checked: sizes, names, directions, nothing switched off."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rivermouth

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rivermouth"
CODE = sorted(
    path for folder in ("src", "jobs", "tools", "bench") for path in (ROOT / folder).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MODULE_LINES, JOB_LINES, FUNCTION_LINES = 400, 40, 50
FORBIDDEN_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
# Put together here, so that this file does not hold what it forbids.
FORBIDDEN_WORDS = re.compile(
    "|".join(["TO" + "DO", "FIX" + "ME", "type: " + "ignore", "no" + "qa"])
)
MAY_PRINT = (PACKAGE / "cli", ROOT / "tools", ROOT / "bench", ROOT / "jobs")
PURE = ("errors", "config", "protocol", "run.report")
FOREIGN = ("pyspark", "delta", "confluent_kafka", "deltalake")
MADE_TOPIC = re.compile(r'(?:lake\.topic|read_once|ready|filled)\((?:[a-z_, ]*, )?"([^"]+)"')
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
ROOMS = DESIGN.partition("\n## 5. Rooms\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `(\w+)` \|.*?\|(.*?)\|", ROOMS.partition("\n```")[0], re.MULTILINE)
ARROWS = {folder: re.findall(r"`(\w+)`", below) for folder, below in ROWS}
"""What each folder imports, from the bottom, as the page on the design lists them."""
HOUSE = {"folders": 21, "floors": 9, "arrows": 123, "modules": 375}
OUTSIDE = {"__init__", "__main__", "testing", "debug"}
TEMPLATES = PACKAGE / "databricks" / "templates"


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_a_module_is_short() -> None:
    long = {short(path): len(lines(path)) for path in CODE if len(lines(path)) > most(path)}
    assert long == {}


def most(path: Path) -> int:
    return JOB_LINES if path.parent == ROOT / "jobs" else MODULE_LINES


def test_a_module_is_named_for_what_it_does_and_says_what_it_is() -> None:
    assert [short(path) for path in CODE if path.stem in FORBIDDEN_NAMES] == []
    assert [short(path) for path in CODE if not ast.get_docstring(tree(path))] == []


def test_every_function_fits_on_a_screen() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = {
        f"{short(path)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in CODE
        for node in ast.walk(tree(path))
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES
    }
    assert long == {}


def test_nothing_is_switched_off_or_left_for_later() -> None:
    found = [
        f"{short(path)}:{n}: {line}"
        for path in (*CODE, *TESTS)
        for n, line in enumerate(lines(path), 1)
        if FORBIDDEN_WORDS.search(line)
    ]
    assert found == []


def test_no_page_has_the_marks_of_a_merge() -> None:
    marked = [
        f"{short(path)}: {line}"
        for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
        for line in lines(path)
        if line.startswith(("<" * 7, ">" * 7))
    ]
    assert marked == []


def test_only_what_talks_to_people_prints() -> None:
    found = {
        short(path)
        for path in CODE
        if not any(path.is_relative_to(folder) for folder in MAY_PRINT)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    }
    assert found == set()


def module_path(name: str) -> Path | None:
    """The file of ``rivermouth.…``; None for a name that is not a module."""
    place = ROOT / "src" / Path(*name.split("."))
    for path in (place / "__init__.py", place.with_suffix(".py")):
        if path.exists():
            return path
    return None


def imports(path: Path, *, types: bool = True) -> Iterator[str]:
    """Every module that ``path`` imports anywhere, a name for each candidate submodule too.

    Where not ``types``, what is imported for the sake of types alone is left out.
    """
    for node in walk(tree(path), types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def walk(node: ast.AST, types: bool) -> Iterator[ast.AST]:
    """Every node; where not ``types``, without what stands under ``if TYPE_CHECKING``."""
    if isinstance(node, ast.If) and not types and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for each in ast.iter_child_nodes(node):
        yield from walk(each, types)


def reachable(room: str) -> dict[str, str]:
    """What importing ``room`` imports, at any depth: module to the file that asked for it."""
    found: dict[str, str] = {}
    start = module_path(f"rivermouth.{room}")
    todo = [start] if start else []
    if start and start.name == "__init__.py":
        todo += sorted(start.parent.rglob("*.py"))
    while todo:
        path = todo.pop()
        for name in imports(path):
            if name not in found:
                found[name] = short(path)
                inner = module_path(name) if name.startswith("rivermouth.") else None
                todo += [inner] if inner else []
    return found


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_imports_nothing_of_spark_kafka_or_delta(room: str) -> None:
    found = reachable(room)
    assert found, f"there is no room {room}"
    foreign = {name: by for name, by in found.items() if name.split(".")[0] in FOREIGN}
    assert foreign == {}


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_starts_where_spark_kafka_and_delta_are_not_installed(room: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({FOREIGN!r}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked}; import rivermouth.{room}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_design_lists_every_folder_and_nothing_stands_outside_of_them() -> None:
    code = [each.relative_to(PACKAGE) for each in PACKAGE.rglob("*.py")]
    assert {each.parts[0] for each in code if len(each.parts) > 1} == {*ARROWS}
    assert {each.stem for each in code if len(each.parts) == 1} == {*OUTSIDE}


@pytest.mark.parametrize("folder", ARROWS)
def test_a_folder_imports_what_the_design_says_and_only_from_above(folder: str) -> None:
    found = {
        name.split(".")[1]
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if not path.is_relative_to(TEMPLATES)  # belongs to those who start a project with it
        for name in imports(path, types=False)
        if name.startswith("rivermouth.") and module_path(name)
    }
    above = [*ARROWS][: [*ARROWS].index(folder)]
    assert found - {folder, "debug"} == {*ARROWS[folder]}
    assert [each for each in ARROWS[folder] if each not in above] == []


def test_the_house_stays_small(capsys: pytest.CaptureFixture[str]) -> None:
    floors: dict[str, int] = {}
    for folder, below in ARROWS.items():
        floors[folder] = 1 + max((floors[each] for each in below), default=0)
    found = {
        "folders": len(ARROWS),
        "floors": max(floors.values()),
        "arrows": sum(map(len, ARROWS.values())),
        "modules": len([*PACKAGE.rglob("*.py")]),
    }
    with capsys.disabled():
        print("", *(f"{number} {what}" for what, number in found.items()), sep=" ")
    assert {what for what, number in found.items() if number > HOUSE[what]} == set()


def test_a_topic_of_the_common_broker_is_made_in_one_file_only() -> None:
    made: dict[str, set[str]] = {}
    for path in (each for each in TESTS if each.parent.name != "logins"):  # it has its own broker
        for topic in MADE_TOPIC.findall(path.read_text(encoding="utf-8")):
            made.setdefault(topic, set()).add(short(path))
    assert {topic: files for topic, files in made.items() if len(files) > 1} == {}


def test_the_public_names_are_all_there_and_all_listed() -> None:
    listed = rivermouth.__all__
    assert sorted(set(listed)) == sorted(listed), "a name is listed twice"
    missing = [name for name in listed if not hasattr(rivermouth, name)]
    assert missing == []
    offered = {
        alias.asname or alias.name
        for node in ast.walk(tree(PACKAGE / "__init__.py"))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rivermouth.")
        for alias in node.names
    }
    assert offered | {"__version__"} == set(listed)
