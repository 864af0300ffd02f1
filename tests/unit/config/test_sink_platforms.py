"""On which platforms a pipeline that sends is refused, and that the reason is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rivermouth.config import Config
from rivermouth.config.pipeline import check_platform
from rivermouth.config.platforms import PLATFORMS
from rivermouth.errors import SinkUnsupported

pytestmark = pytest.mark.unit

Loads = Callable[..., Config]
EVERYWHERE = {*PLATFORMS}
WITH_A_JVM = {"local", "cluster", "classic"}


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("table: s.t", EVERYWHERE),
        ("kafka: u", EVERYWHERE),
        ("kafka: u, forward_headers: true, header_columns: [id]", EVERYWHERE),
        ("kafka: u, delivery: at-most-once", {"local"}),
        ("foreach_partition: 'shop:store'", WITH_A_JVM),
        ("foreach_partition: 'shop:store', delivery: at-most-once", {"local"}),
    ],
)
def test_a_sink_is_refused_where_it_cannot_keep_its_promise(
    target: str, allowed: set[str], lake: str, loads: Loads
) -> None:
    pipeline = loads(lake.replace("table: s.t", target)).pipelines["p"]
    refused = {}
    for name, platform in PLATFORMS.items():
        try:
            check_platform(pipeline, platform)
        except SinkUnsupported as error:
            refused[name] = error
    assert {*PLATFORMS} - {*refused} == allowed
    for name, told in refused.items():
        assert (told.where, told.code) == ("pipeline p", "RM209")
        assert f"the platform {name}" in told.found
        assert told.remedy
