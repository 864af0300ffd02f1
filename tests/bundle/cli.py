"""The real Databricks CLI, as a test runs it: in one project, against one workspace, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """How a call ended: the exit code, what it answered, what it remarked."""

    code: int
    answer: str
    remarks: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.answer}\n{self.remarks}"


@dataclass(frozen=True)
class Cli:
    binary: Path
    project: Path
    environ: Mapping[str, str]
    patience_seconds: float = 120

    def bundle(self, command: str, *arguments: str) -> Finished:
        """``databricks bundle COMMAND ARGUMENTS`` in the project's folder."""
        done = subprocess.run(
            [str(self.binary), "bundle", command, *arguments],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.patience_seconds,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def must(self, command: str, *arguments: str) -> str:
        """The answer of a call that succeeds."""
        finished = self.bundle(command, *arguments)
        assert finished.code == 0, f"{command}: {finished}"
        return finished.answer


def alone(url: str, home: Path) -> dict[str, str]:
    """An environment in which the CLI knows the workspace at ``url`` and nothing else.

    Its settings and caches lie in ``home``. What it would ask of any other host it asks the
    workspace to pass on, as a proxy, which refuses and writes it down.
    """
    tools = Path(sys.executable).parent  # where the command that builds the wheel lies
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(home),
        "HTTP_PROXY": url,
        "HTTPS_PROXY": url,
        "DATABRICKS_HOST": url,
        "DATABRICKS_TOKEN": "any",
        "DATABRICKS_CONFIG_FILE": os.devnull,
        "DATABRICKS_CACHE_DIR": str(home / "cache"),
        "DATABRICKS_BUNDLE_RETRY_INTERVAL_MS": "10",
        "DATABRICKS_CLI_DISABLE_TELEMETRY": "1",
        "DATABRICKS_CLI_DISABLE_UPDATE_CHECK": "true",
    }
