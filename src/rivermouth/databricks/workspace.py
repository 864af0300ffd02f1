"""The client of a workspace; the environment or a profile gives its address and the login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rivermouth import __version__
from rivermouth.errors import MissingPackage

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
