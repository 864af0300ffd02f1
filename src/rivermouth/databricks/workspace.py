"""The client of a workspace, and the secrets that Databricks keeps.

A process on a cluster reads them through dbutils, any other process from the workspace.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rivermouth import __version__
from rivermouth.config import SecretName, Secrets
from rivermouth.errors import MissingPackage, SecretUnavailable

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


PATIENCE_S = 10
"""How long a request is repeated if the workspace does not answer, in seconds."""


def workspace_client() -> WorkspaceClient:
    """A client for the workspace of the environment. Raises MissingPackage or an SDK error."""
    try:
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.config import Config
    except ImportError:
        raise missing_sdk() from None
    config = Config(
        product="rivermouth",
        product_version=__version__,
        http_timeout_seconds=PATIENCE_S,
        retry_timeout_seconds=PATIENCE_S,
    )
    return WorkspaceClient(config=config)


def missing_sdk() -> MissingPackage:
    remedy = "Install rivermouth with its extra: pip install 'rivermouth[databricks]'"
    return MissingPackage("a workspace needs databricks-sdk, which is not installed", remedy=remedy)


def trouble(fault: Exception) -> tuple[str, str]:
    """What is wrong with the workspace, and what to do.

    Only the type of the error decides: its text may contain a secret.
    """
    from databricks.sdk.errors import PermissionDenied, Unauthenticated
    from databricks.sdk.errors.base import DatabricksError

    if isinstance(fault, Unauthenticated):
        return "the workspace does not accept the login", "Log in again: databricks auth login"
    if isinstance(fault, PermissionDenied):
        return "the workspace refuses it: no permission", "Ask an admin for the permission"
    if isinstance(fault, DatabricksError):
        return (
            f"the workspace refuses it: {type(fault).__name__}",
            "Try again; if it fails again, ask an admin",
        )
    if isinstance(fault, OSError):
        return "the workspace does not answer", "Check DATABRICKS_HOST and the network"
    if isinstance(fault, ValueError):
        fix = "Set DATABRICKS_HOST and DATABRICKS_TOKEN, or: databricks auth login"
        return "no workspace is configured", fix
    return f"the request failed: {type(fault).__name__}", "Check the login and the network"


def secrets_here(environ: Mapping[str, str] = os.environ) -> Secrets:
    """Reads secrets in the way of this process. Connects only when the first one is read."""
    if environ.get("DATABRICKS_RUNTIME_VERSION"):
        return of_dbutils(_dbutils)
    return of_workspace(cache(workspace_client))


def of_workspace(client: Callable[[], WorkspaceClient]) -> Secrets:
    """Reads secrets from a workspace, which answers in base64."""

    def fetch(scope: str, key: str) -> str:
        return base64.b64decode(client().secrets.get_secret(scope, key).value or "").decode()

    return partial(_ask, fetch)


def of_dbutils(dbutils: Callable[[], Any]) -> Secrets:
    """Reads secrets through the dbutils of a cluster."""

    def fetch(scope: str, key: str) -> str:
        return str(dbutils().secrets.get(scope, key))

    return partial(_ask, fetch)


def _dbutils() -> Any:
    # Outside a cluster this import itself would try to log in.
    try:
        from databricks.sdk.runtime import dbutils
    except ImportError:
        raise missing_sdk() from None
    return dbutils


def _ask(fetch: Secrets, scope: str, key: str) -> str:
    try:
        return fetch(scope, key)
    except MissingPackage:
        raise
    except Exception as fault:  # each way has its own errors, with any text
        what, remedy = _explained(fault)
    # Raised outside the handler: the new error must not hold the text of the old one.
    raise SecretUnavailable(what, where=str(SecretName(scope, key)), remedy=remedy) from None


def _explained(fault: Exception) -> tuple[str, str]:
    from databricks.sdk.errors import NotFound, PermissionDenied

    if isinstance(fault, NotFound):
        return "there is no such scope or key", ""
    if isinstance(fault, PermissionDenied):
        return "you may not read this scope", "Ask for READ on the scope"
    if isinstance(fault, UnicodeDecodeError):
        return "its value is not text in UTF-8", "Store it as text: databricks secrets put-secret"
    return trouble(fault)
