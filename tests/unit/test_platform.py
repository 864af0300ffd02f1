"""On what a process runs, told by its environment and its session."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rivermouth.errors import ConfigError
from rivermouth.registry.platforms import (
    CLASSIC,
    CONNECT,
    LOCAL,
    SERVERLESS,
    STANDARD,
    Platform,
    platform_of,
)

pytestmark = pytest.mark.unit

RUNTIME = {"DATABRICKS_RUNTIME_VERSION": "18.0"}
CASES: Mapping[str, tuple[Mapping[str, str], bool, Platform]] = {
    "a laptop": ({}, False, LOCAL),
    "Spark Connect anywhere": ({}, True, CONNECT),
    "a cluster with dedicated access": (RUNTIME, False, CLASSIC),
    "a cluster in standard mode": (RUNTIME, True, STANDARD),
    "serverless": ({**RUNTIME, "IS_SERVERLESS": "TRUE"}, True, SERVERLESS),
    "what somebody says": ({**RUNTIME, "RIVERMOUTH_PLATFORM": "classic"}, True, CLASSIC),
}


@pytest.mark.parametrize(("environ", "connect", "platform"), CASES.values(), ids=CASES)
def test_the_platform_is(environ: Mapping[str, str], connect: bool, platform: Platform) -> None:
    assert platform_of(environ, connect=connect) is platform


def test_a_platform_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="expected one of: local, classic"):
        platform_of({"RIVERMOUTH_PLATFORM": "cloud"})


def test_only_serverless_refuses_a_run_without_end() -> None:
    platforms = (LOCAL, CLASSIC, STANDARD, SERVERLESS, CONNECT)
    assert [each for each in platforms if not each.continuous] == [SERVERLESS]
