"""Secrets that Databricks keeps: read at the moment of use, never stored, never shown.

A process on a cluster reads them through dbutils, any other process from the workspace.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rivermouth.config import SecretName, Secrets
from rivermouth.databricks.workspace import missing_sdk, trouble, workspace_client
from rivermouth.errors import MissingPackage, SecretUnavailable

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


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
