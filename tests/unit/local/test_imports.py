"""What another process imports from a folder that stands for another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.local.scratch import importing_from

pytestmark = pytest.mark.unit

CODE = """
import calendar, helpful, shop, shop.rows, bare.one
print(calendar.isleap(2024), helpful.__file__, shop.NAME, shop.rows.__file__, bare.one.WHAT)
"""


def test_the_modules_of_these_names_are_those_of_the_folder_and_know_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "with 'quotes'"
    files = {
        "helpful.py": "",
        "calendar.py": "raise RuntimeError",
        "shop/__init__.py": "NAME = 'shop'",
        "shop/rows.py": "",
        "bare/one.py": "import helpful; WHAT = helpful.__name__",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    place = importing_from(tmp_path / "imports", str(folder))
    assert importing_from(tmp_path / "imports", str(folder)) == place

    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == f"True {folder}/helpful.py shop {folder}/shop/rows.py helpful"
