"""tools/databricks_cli/build.py, with a Go that only pretends: no network, no building."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bundle.conftest import BUILD

pytestmark = pytest.mark.unit

RIGHT = "Databricks CLI v1.12.1"


@dataclass(frozen=True)
class Machine:
    """A PATH with a Go of our own on it, and an empty cache."""

    folder: Path

    def has_go(self, version: str, build: str) -> None:
        """``build`` is shell that ``go build`` runs; ``$binary`` is what it is to write."""
        script = f"""#!/bin/sh
            [ "$1" = env ] && echo {version} && exit
            while [ "$1" != -o ]; do shift; done
            binary=$2
            echo built >> {self.folder}/builds
            {build}
        """
        go = self.folder / "go"
        go.write_text(script, encoding="utf-8")
        go.chmod(0o755)

    @property
    def builds(self) -> int:
        return len((self.folder / "builds").read_text(encoding="utf-8").splitlines())

    def build(self) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "RIVERMOUTH_CACHE": str(self.folder / "cache"),
            "PIP_INDEX_URL": "http://127.0.0.1:9/",  # nobody answers there
            "PIP_RETRIES": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }
        return subprocess.run(
            [sys.executable, str(BUILD)], env=environ, capture_output=True, text=True, check=False
        )


def prints(version: str) -> str:
    """Shell that makes a binary which says so."""
    return f"""printf '#!/bin/sh\\necho "{version}"\\n' > $binary; chmod +x $binary"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_prints_where_the_binary_is_and_builds_it_once(machine: Machine) -> None:
    machine.has_go("go1.26.8", prints(RIGHT))
    first, second = machine.build(), machine.build()
    assert first.returncode == second.returncode == 0
    assert Path(first.stdout.strip()).exists()
    assert second.stdout == first.stdout
    assert second.stderr == ""
    assert machine.builds == 1


def test_only_the_binary_stays_in_the_cache(machine: Machine) -> None:
    machine.has_go("go1.27.0", prints(RIGHT))
    machine.build()
    files = [path.name for path in (machine.folder / "cache").rglob("*") if path.is_file()]
    assert files == ["databricks"]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (prints("Databricks CLI v1.13.0"), "the built binary is another version"),
        ("echo 'go: x: Get: dial tcp: lookup x: no such host'; exit 1", "cannot be downloaded"),
        ("echo 'verifying x: checksum mismatch'; exit 1", "not the one that was locked"),
        ("echo 'write /x: no space left on device'; exit 1", "no room is left on the disk"),
        ("echo 'x.go:1: syntax error'; exit 1", "go build failed; found x.go:1: syntax error"),
    ],
)
def test_what_fails_is_one_line_with_the_remedy(machine: Machine, build: str, said: str) -> None:
    machine.has_go("go1.26.0", build)
    failed = machine.build()
    progress, error = failed.stderr.splitlines()
    assert failed.returncode == 2
    assert "building version 1.12.1" in progress
    assert error.startswith("databricks-cli: RM200 ")
    assert said in error
    assert failed.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["go1.25.9", ""])
def test_a_go_that_is_too_old_is_not_used(machine: Machine, version: str) -> None:
    machine.has_go(version, prints(RIGHT))
    failed = machine.build()
    assert failed.returncode == 2
    assert "there is no Go 1.26 here and the package index cannot be reached" in failed.stderr
    assert not (machine.folder / "builds").exists()
