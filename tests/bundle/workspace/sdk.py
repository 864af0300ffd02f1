"""The real SDK against a workspace, and nothing else of this machine's logins."""

from __future__ import annotations

import os
from pathlib import Path

from databricks.sdk import WorkspaceClient
from databricks.sdk.config import Config


def config_of(url: str) -> Config:
    """A login that asks a workspace which does not answer for a second, not for minutes."""
    return Config(
        host=url,
        token="any",
        config_file=os.devnull,
        http_timeout_seconds=60,  # of one that is there and busy
        retry_timeout_seconds=1,
    )


def client_of(url: str) -> WorkspaceClient:
    return WorkspaceClient(config=config_of(url))


def environ_of(url: str, home: Path) -> dict[str, str]:
    """For a process of its own: the login, and no other."""
    login = {"DATABRICKS_HOST": url, "DATABRICKS_TOKEN": "any"}
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DATABRICKS")}
    return {**kept, **login, "DATABRICKS_CONFIG_FILE": os.devnull, "HOME": str(home)}
