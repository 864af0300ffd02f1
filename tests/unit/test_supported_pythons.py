"""Which Pythons are supported is said once, in ``requires-python``; all else agrees with it."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.wheel import ROOT, metadata

pytestmark = pytest.mark.unit

PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
[[FIRST, ABOVE]] = re.findall(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"', PROJECT, re.MULTILINE)
MINORS = [*range(int(FIRST), int(ABOVE))]
OLDEST, NEWEST = f"3.{MINORS[0]}", f"3.{MINORS[-1]}"


def test_the_wheel_says_so_in_its_bounds_and_its_classifiers() -> None:
    assert metadata()["Requires-Python"] == f"<3.{ABOVE},>={OLDEST}"
    said = [str(each) for each in metadata().get_all("Classifier", [])]
    python = "Programming Language :: Python :: "
    assert [each for each in said if each.startswith(python)] == [f"{python}3.{n}" for n in MINORS]


@pytest.mark.parametrize(
    "page", ["README.md", "Makefile", "src/rivermouth/databricks/templates/README.md"]
)
def test_every_page_names_the_oldest_and_the_newest(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert re.findall(r"Python (3\.\d+) to (3\.\d+)", text) == [(OLDEST, NEWEST)]


def test_set_up_looks_for_these_the_newest_first() -> None:
    found = runpy.run_path(str(ROOT / "tools" / "setup.py"))["SUPPORTED"]
    assert found == [(3, minor) for minor in reversed(MINORS)]


def test_what_is_checked_and_locked_holds_for_the_oldest() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert f'target-version = "py{OLDEST.replace(".", "")}"' in PROJECT
    assert f'python_version = "{OLDEST}"' in PROJECT
    assert f"--universal --python-version {OLDEST} " in makefile


def test_the_ci_of_a_new_project_has_one_of_them() -> None:
    ci = (ROOT / "src/rivermouth/databricks/templates/ci.yml").read_text("utf-8")
    [found] = re.findall(r'python-version: "3\.(\d+)"', ci)
    assert int(found) in MINORS
