"""The project in ``examples/orders`` as its owner has it: its own tests, by pytest and the plugin.

So are the tests that the page on testing shows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import page, snippets
from tests.processes import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]

PROJECT = ROOT / "examples" / "orders"


def test_the_page_shows_the_files_of_the_project() -> None:
    files = {
        "toml": "pyproject.toml",
        "yaml": "lake.yml",
        "python": "tests/test_orders.py",
    }
    for language, name in files.items():
        shown = snippets(page("testing"), language)[0]
        assert shown in (PROJECT / name).read_text(encoding="utf-8")


def test_the_tests_of_the_project_and_of_the_page_pass(tmp_path: Path) -> None:
    project = shutil.copytree(
        PROJECT, tmp_path / "orders", ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache")
    )
    [_, *own] = snippets(page("testing"), "python")
    for number, text in enumerate(own):
        (project / "tests" / f"test_page_{number}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--basetemp", str(tmp_path / "t"), "-W", "error"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{2 + len(own)} passed" in done.stdout
