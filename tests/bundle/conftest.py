"""The CLI, built once; for each test a clone of the project and an empty workspace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bundle.cli import Cli, alone
from tests.bundle.clone import copied
from tests.bundle.workspace.executor import Executor, refuses
from tests.bundle.workspace.workspace import Workspace

BUILD = Path(__file__).parents[2] / "tools" / "databricks_cli" / "build.py"


@pytest.fixture(scope="session")
def databricks() -> Path:
    """The binary; the first time on a machine it is built."""
    done = subprocess.run([sys.executable, str(BUILD)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(done.stderr.strip(), pytrace=False)
    return Path(done.stdout.strip())


@pytest.fixture
def executor() -> Executor:
    """What runs the tasks; a test that wants another is parametrised over ``executor``."""
    return refuses


@pytest.fixture
def workspace(executor: Executor) -> Iterator[Workspace]:
    """An empty one, which must not be asked what it does not know."""
    with Workspace(executor) as running:
        yield running
    assert running.unknown == [], "no route knows these"


@pytest.fixture
def cli(databricks: Path, workspace: Workspace, tmp_path: Path) -> Cli:
    """The CLI in a clone of the project, against the test's workspace."""
    environ = {
        **alone(workspace.url, tmp_path / "home"),
        "BUNDLE_VAR_bootstrap_servers": "broker:9092",
    }
    return Cli(databricks, copied(tmp_path / "clone"), environ)
