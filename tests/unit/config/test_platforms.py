"""On what a process runs, told by its environment and its session."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rivermouth.config.platforms import (
    CLASSIC,
    CLUSTER,
    CONNECT,
    LOCAL,
    PLATFORMS,
    SERVERLESS,
    STANDARD,
    Capability,
    Platform,
    platform_of,
)
from rivermouth.errors import ConfigError
from rivermouth.run.starting import platform_with

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
    with pytest.raises(ConfigError, match="expected one of: local, cluster, classic"):
        platform_of({"RIVERMOUTH_PLATFORM": "cloud"})


def test_executors_on_other_machines_make_a_session_a_cluster() -> None:
    assert platform_of({}, one_host=False) is CLUSTER
    assert platform_of({}, connect=True, one_host=False) is CONNECT
    assert platform_of(RUNTIME, one_host=False) is CLASSIC


JVM = {CLUSTER, CLASSIC, LOCAL}


@pytest.mark.parametrize(
    ("capability", "having"),
    [
        (Capability.JVM, JVM),
        (Capability.ONE_HOST, {LOCAL}),
        (Capability.FILES, {LOCAL, CLUSTER}),
        (Capability.CONTINUOUS, {*PLATFORMS.values()} - {SERVERLESS}),
        (Capability.SHADED_KAFKA, {CLASSIC, STANDARD, SERVERLESS}),
    ],
)
def test_a_capability_is_had_by(capability: Capability, having: set[Platform]) -> None:
    assert {each for each in PLATFORMS.values() if each.has(capability)} == having


def test_every_capability_is_had_somewhere_and_several_can_be_asked_for_at_once() -> None:
    assert {one for each in PLATFORMS.values() for one in each.capabilities} == {*Capability}
    assert LOCAL.has(Capability.JVM, Capability.ONE_HOST)
    assert not CLUSTER.has(Capability.JVM, Capability.ONE_HOST)
    assert CONNECT.has()


def test_a_session_that_is_to_be_started_is_where_the_file_says() -> None:
    assert platform_with(None) is LOCAL
    assert platform_with(None, "spark://a:7077") is CLUSTER
