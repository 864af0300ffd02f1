"""A user's own project: written, validated by the real CLI, its tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.bundle.scaffold import scaffold
from rivermouth.errors import ScaffoldRefused
from tests.bundle.cli import Cli, alone
from tests.bundle.workspace.workspace import Workspace


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my-lake"
    scaffold(folder)
    return folder


@pytest.mark.unit
def test_it_has_a_name_and_an_identity_of_its_own_and_no_wheel_to_build(
    project: Path, tmp_path: Path
) -> None:
    bundle = (project / "databricks.yml").read_text(encoding="utf-8")
    assert "name: my-lake" in bundle
    assert "artifacts" not in bundle
    other = tmp_path / "other"
    scaffold(other)
    assert _uuid(bundle) != _uuid((other / "databricks.yml").read_text(encoding="utf-8"))
    texts = [each.read_text(encoding="utf-8") for each in project.rglob("*") if each.is_file()]
    assert [text for text in texts if ".whl" in text or "@name@" in text] == []


def _uuid(bundle: str) -> str:
    (line,) = (each for each in bundle.splitlines() if each.startswith("  uuid:"))
    return line


@pytest.mark.unit
def test_it_overwrites_nothing(project: Path) -> None:
    with pytest.raises(ScaffoldRefused, match="not empty"):
        scaffold(project)


@pytest.mark.unit
def test_a_folder_that_cannot_name_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldRefused):
        scaffold(tmp_path / "9lives!")


@pytest.mark.unit
def test_a_configuration_that_does_not_hear_the_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldRefused) as refused:
        scaffold(tmp_path / "lake", "kafka: {bootstrap.servers: ${env:KAFKA_BOOTSTRAP}}")
    assert refused.value.found == "nothing of CATALOG, SCHEMA"
    assert not (tmp_path / "lake").exists()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["dev", "staging", "prod"])
def test_the_cli_validates_and_deploys_it(
    databricks: Path, workspace: Workspace, project: Path, tmp_path: Path, target: str
) -> None:
    cli = Cli(databricks, project, alone(workspace.url, tmp_path / "home"))
    servers = ("--var", "bootstrap_servers=broker:9092")
    cli.must("validate", "--strict", *servers, "-t", target)
    cli.must("deploy", *servers, "-t", target)
    assert workspace.stored()["jobs"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
def test_its_own_tests_pass(project: Path) -> None:
    """With an environment that is there already; the wheels it would fetch are those of ours."""
    python = project / ".venv" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=project, check=True
    )
    site = next((project / ".venv" / "lib").glob("python3*/site-packages"))
    lines = [each for each in sys.path if each and Path(each).is_dir()]
    (site / "ours.pth").write_text("\n".join(lines), encoding="utf-8")
    (project / ".venv" / "ready").touch()
    make = shutil.which("make")
    assert make, "make is missing"
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([make, "test"], cwd=project, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert python.exists()
    assert "1 passed" in done.stdout
