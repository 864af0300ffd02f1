"""The project's own bundle where a test may build and deploy it: a copy of what that needs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bundle.bundle_files import ROOT

NEEDED = (
    ".gitignore",
    "LICENSE",
    "README.md",
    "config",
    "databricks.yml",
    "jobs",
    "pyproject.toml",
    "resources",
    "src",
)


def copied(folder: Path) -> Path:
    """A copy in ``folder``, which does not exist yet."""
    folder.mkdir()
    for name in NEEDED:
        path = ROOT / name
        if path.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, folder / name, ignore=unwanted)
        else:
            shutil.copy(path, folder)
    return folder
