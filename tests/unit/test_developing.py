"""The commands that docs/developing.md shows exist: their tests, modules and targets."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.unit, pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "developing.md").read_text("utf-8")
COMMANDS = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
PYTEST = sorted({each.split("||")[0] for each in COMMANDS if "-m pytest" in each})


def test_the_page_shows_commands() -> None:
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("command", PYTEST)
def test_the_tests_of_a_command_are_collected(command: str) -> None:
    words = shlex.split(command.partition("-m pytest")[2])
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]


def test_modules_and_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in COMMANDS:
        if command.startswith("make "):
            assert f"\n{command.split()[1]}:" in makefile, command
        if found := re.search(r"-m (tests\.[a-z_.]+)", command):
            assert importlib.util.find_spec(found[1]) is not None, command


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[a-z_/]+\.py)`", PAGE))))
def test_the_files_that_it_names_exist(path: str) -> None:
    assert (ROOT / path).exists()
