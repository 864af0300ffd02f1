"""docs/databricks.md names resources, variables and parameters that the bundle has."""

from __future__ import annotations

import re

import pytest
from ruamel.yaml import YAML

from tests.bundle.bundle_files import ROOT, TARGETS, jobs, resource_files, root_file
from tests.bundle.transcript import MARKS, STEPS
from tests.pages import page, snippets

pytestmark = pytest.mark.unit

TEXT, _, TRANSCRIPT = page("databricks").partition(MARKS[0])
SHELL = "\n".join(snippets(TEXT, "sh"))


def test_every_resource_is_on_the_page() -> None:
    keys = {each.key for each in resource_files() if each.kind != "alerts"}
    assert [key for key in sorted(keys) if f"`{key}`" not in TEXT] == []


def test_the_commands_name_jobs_targets_and_variables_that_there_are() -> None:
    run = set(re.findall(r"databricks bundle run (\w+)", SHELL))
    assert run
    assert run <= {each.key for each in jobs()}
    assert set(re.findall(r" -t (\w+)", SHELL)) <= set(TARGETS)
    set_there = re.findall(r"BUNDLE_VAR_(\w+)=|--var (\w+)=", SHELL)
    assert {a or b for a, b in set_there} <= set(root_file()["variables"])


def test_every_parameter_on_the_page_is_one_of_the_job_that_gets_it() -> None:
    named = {each.key: {one["name"] for one in each.body["parameters"]} for each in jobs()}
    given = re.findall(r"bundle run (\w+)[^\n]* --params (\S+)", SHELL)
    assert given
    for job, pairs in given:
        assert {pair.partition("=")[0] for pair in pairs.split(",")} <= named[job]
    assert all("select" in parameters for parameters in named.values())


def test_what_the_page_gives_to_targets_are_variables_that_there_are() -> None:
    blocks = [YAML(typ="safe").load(each) for each in snippets(TEXT, "yaml")]
    given = [each["targets"] for each in blocks if "targets" in each]
    assert given
    for targets in given:
        assert set(targets) <= set(TARGETS)
        for target in targets.values():
            assert set(target["variables"]) <= set(root_file()["variables"])


@pytest.mark.parametrize("target", TARGETS)
def test_the_transcript_has_every_step_of_every_target(target: str) -> None:
    asked = re.findall(rf"^\$ databricks bundle (.*) -t {target}$", TRANSCRIPT, re.MULTILINE)
    assert asked == list(STEPS)


def test_the_transcript_names_nothing_of_the_machine_that_made_it() -> None:
    assert re.findall(r"127\.0\.0\.1|/(?:tmp|home|root)/|CodeCache|JVM", TRANSCRIPT) == []


def test_every_file_that_the_page_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT) if "://" not in link]
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
