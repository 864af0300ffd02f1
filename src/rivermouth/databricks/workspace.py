"""The way to a workspace: who we are there is as the environment or a profile says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rivermouth import __version__
from rivermouth.errors import MissingPackage

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

PATIENCE_S = 10
"""How long a workspace that does not answer is asked again."""


def workspace_client() -> WorkspaceClient:
    """A client as the environment says. Raises MissingPackage, and what the SDK raises."""
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
    """What stands between us and a workspace, and what to do.

    Told by the type alone: what a foreign error says may repeat what nobody may read.
    """
    from databricks.sdk.errors import PermissionDenied, Unauthenticated
    from databricks.sdk.errors.base import DatabricksError

    if isinstance(fault, Unauthenticated):
        return "the workspace does not accept the login", "Log in again: databricks auth login"
    if isinstance(fault, PermissionDenied):
        return "the workspace refuses it: no permission", "Have the right to it granted"
    if isinstance(fault, DatabricksError):
        return f"the workspace refuses it: {type(fault).__name__}", "Try again; then ask its admin"
    if isinstance(fault, OSError):
        return "the workspace does not answer", "Check DATABRICKS_HOST and the network"
    if isinstance(fault, ValueError):
        fix = "Set DATABRICKS_HOST and DATABRICKS_TOKEN, or: databricks auth login"
        return "no workspace is configured", fix
    return f"it cannot be asked: {type(fault).__name__}", "Check the login and the network"
