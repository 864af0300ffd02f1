"""What a wheel holds, and what set-up says when it cannot go on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheel import ROOT, build

pytestmark = pytest.mark.unit


def test_a_wheel_holds_the_jar_lock_the_type_marker_and_the_command(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        names = wheel.namelist()
        read = {name.rsplit("/", 1)[-1]: wheel.read(name).decode() for name in names}
    assert "rivermouth/local/jars.lock" in names
    assert "rivermouth/py.typed" in names
    assert "rivermouth/report/assets/page.html" in names
    assert "Leon Sorokin" in read["NOTICE"]
    assert "Leon Sorokin" in read["uPlot.iife.min.js"]
    assert [name for name in names if name.startswith(("tests", "tools", "bench"))] == []
    assert "rivermouth = rivermouth.cli.app:main" in read["entry_points.txt"]
    assert "Requires-Dist: pyspark==4.2.0; extra == 'local'" in read["METADATA"]


def test_the_locks_name_a_hash_for_every_package_and_no_place() -> None:
    locks = [*(ROOT / "requirements").glob("*.lock"), ROOT / "tools" / "databricks_cli" / "go.lock"]
    assert len(locks) == 4
    for lock in locks:
        text = lock.read_text(encoding="utf-8")
        packages = [part for part in text.replace("\\\n", " ").splitlines() if part.strip()]
        assert [part for part in packages if "==" not in part or "--hash=sha256:" not in part] == []
        assert [
            sign for sign in ("://", "--index", "--find-links", "#", "file:") if sign in text
        ] == []


def python_that_is(folder: Path, version: tuple[int, ...]) -> Path:
    """A stand-in on which set-up believes to run: this Python with another version number."""
    folder.mkdir()
    start = folder / "start.py"
    start.write_text(
        "import runpy, sys\n"
        f"sys.version_info = {version!r}\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    return start


@pytest.mark.parametrize("version", [(3, 8, 1), (3, 9, 18), (3, 15, 0)])
def test_a_python_that_does_not_fit_is_one_line_and_exit_code_2(
    tmp_path: Path, version: tuple[int, ...]
) -> None:
    start = python_that_is(tmp_path / "python", version)
    done = subprocess.run(
        [sys.executable, str(start), str(ROOT / "tools" / "setup.py")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Python 3.10 to 3.14 is needed; found " + ".".join(map(str, version)) in done.stderr
    assert "make PYTHON=" in done.stderr


@pytest.fixture
def bare_clone(tmp_path: Path) -> Path:
    """What set-up needs of a clone, with an environment that has yet to be made."""
    clone = tmp_path / "clone"
    for folder in ("requirements", "tools", "src"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    return clone


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"PIP_INDEX_URL": "http://127.0.0.1:9/nothing"}, "the package index cannot be reached"),
        ({"PIP_NO_INDEX": "1"}, "the package index does not offer what was locked"),
    ],
    ids=["no network", "an empty index"],
)
def test_packages_that_cannot_be_had_are_one_line_and_exit_code_2(
    bare_clone: Path, environ: dict[str, str], said: str
) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    done = subprocess.run(
        [sys.executable, str(bare_clone / "tools" / "setup.py")],
        env={**kept, "PIP_RETRIES": "1", "PIP_NO_CACHE_DIR": "1", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert said in last
    assert str(bare_clone / ".venv" / "setup.log") in last
    assert "Traceback" not in done.stderr
