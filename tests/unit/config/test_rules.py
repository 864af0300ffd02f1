"""Rules find their settings by name: each name must be one that a pipeline has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import Field

from rivermouth.config import Config, Pipeline, Source
from rivermouth.config.rules import RULES, Rule
from rivermouth.config.settings import given, keys_of, valid_settings
from rivermouth.config.shared_rules import AGREED
from rivermouth.config.value_types import Count

Loads = Callable[..., Config]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_looks_at_settings_that_exist(rule: Rule, lake: str, loads: Loads) -> None:
    assert {*rule.settings} <= {*given(loads(lake).pipelines["p"])}


def test_what_two_pipelines_must_agree_on_exists(lake: str, loads: Loads) -> None:
    assert {*AGREED} <= {*given(loads(lake).pipelines["p"])}


def test_the_sound_settings_of_a_sound_pipeline_are_all_its_settings() -> None:
    data = {
        "source": {"topics": ("t",), "format": "json"},
        "schema": "id BIGINT",
        "target": {"table": "s.t", "mode": "upsert", "keys": ("id",)},
        "retry": {"for": "1m"},
    }
    whole = Pipeline.model_validate({"name": "p", **data})
    assert valid_settings(Pipeline, data) == given(whole)


def test_what_is_faulty_or_missing_is_not_among_the_sound_settings() -> None:
    data = {"source": {"topics": ("t", "t"), "start": "latest"}, "target": [], "retry": 5}
    found = valid_settings(Pipeline, data)
    assert str(found["source.start"]) == "Start(edge='latest', offsets={})"
    assert found["source.key"] is None
    for path in ("source.topics", "source.format", "schema", "target.table", "target.mode"):
        assert path not in found


def test_a_field_is_all_that_a_new_setting_takes() -> None:
    class Wider(Source):
        at_least: Count = Field(default=1, validation_alias="at least")

    known, at = keys_of(Source), keys_of(Wider).index("at least")
    assert keys_of(Wider) == (*known[:at], "at least", *known[at:])
    assert valid_settings(Wider, {"at least": 0}).get("at least") is None
    assert valid_settings(Wider, {"at least": 5})["at least"] == 5
