"""Checks of pipelines that send: whether the compute of a workspace can keep what they promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from rivermouth.config import Config, Pipeline
from rivermouth.config.sink_platforms import check_platform
from rivermouth.errors import SinkUnsupported
from rivermouth.operate.doctor import Check, refused
from rivermouth.registry.platforms import CLASSIC, SERVERLESS, STANDARD, Platform, platform_of

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_COMPUTE = {
    CLASSIC: "clusters in dedicated mode",
    STANDARD: "clusters in standard mode",
    SERVERLESS: "serverless compute",
}
_MODES = {
    "SINGLE_USER": CLASSIC,
    "DATA_SECURITY_MODE_DEDICATED": CLASSIC,
    "USER_ISOLATION": STANDARD,
    "DATA_SECURITY_MODE_STANDARD": STANDARD,
}
"""Platforms by the access mode of a cluster."""


def asked_platform(
    client: WorkspaceClient, cluster: str, environ: Mapping[str, str]
) -> Platform | None:
    """The platform of a cluster, or of this process; None where that cannot be told."""
    if cluster:
        with suppress(Exception):  # the check of the cluster itself tells of it
            mode = client.clusters.get(cluster).data_security_mode
            return _MODES.get(mode.value) if mode is not None else None
        return None
    serverless = environ.get("IS_SERVERLESS", "").lower() == "true"
    return platform_of(environ) if serverless or environ.get("RIVERMOUTH_PLATFORM") else None


def check_sends(config: Config, platform: Platform | None) -> Iterator[Check]:
    """Of each pipeline that sends: where it can run, or that it cannot run on ``platform``."""
    for each in config.pipelines.values():
        if each.shape.sends:
            yield _check(each, [*_COMPUTE] if platform is None else [platform])


def _check(pipeline: Pipeline, platforms: list[Platform]) -> Check:
    name, fits = f"pipeline {pipeline.name}", []
    error: SinkUnsupported | None = None
    for each in platforms:
        try:
            check_platform(pipeline, each)
            fits.append(_COMPUTE.get(each, each.name))
        except SinkUnsupported as unsupported:
            error = error or unsupported
    if error is not None and not fits:
        return refused(name, error)
    only = "only " if error is not None else ""
    return Check(name, True, f"{pipeline.delivery.value}, {only}on {', '.join(fits)}")
