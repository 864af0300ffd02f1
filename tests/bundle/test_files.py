"""The project's own bundle by itself: what its files name exists, and nothing is forgotten."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from html import escape
from typing import Any

import pytest
from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job
from databricks.bundles.schemas import Schema
from databricks.bundles.secret_scopes import SecretScope
from databricks.bundles.volumes import Volume

from rivermouth import __version__
from rivermouth.config import Catalog, load
from tests.bundle.asking import dashboard
from tests.bundle.bundle_files import (
    ROOT,
    SINGULAR,
    TARGETS,
    ResourceFile,
    jobs,
    references,
    resource_files,
    root_file,
    texts,
)

pytestmark = pytest.mark.unit

MODELS: dict[str, Callable[[Any], object]] = {
    "alerts": Alert.from_dict,
    "dashboards": Dashboard.from_dict,
    "jobs": Job.from_dict,
    "schemas": Schema.from_dict,
    "secret_scopes": SecretScope.from_dict,
    "volumes": Volume.from_dict,
}
HOLDS_STATE = ("schemas", "volumes", "secret_scopes")
UPLOADED = "${workspace.file_path}/"
CONFIG = ROOT / "config" / "rivermouth.yml"
every_resource = pytest.mark.parametrize("resource", resource_files(), ids=str)
every_job = pytest.mark.parametrize("job", jobs(), ids=str)


def arguments(job: ResourceFile) -> list[str]:
    """The command lines of a job's tasks, one after the other."""
    tasks = job.body["tasks"]
    return [each for task in tasks for each in task["spark_python_task"]["parameters"]]


def given(job: ResourceFile) -> dict[str, str]:
    """What a job passes with --set."""
    pairs = (each.removeprefix("--set=") for each in arguments(job) if each.startswith("--set="))
    return dict(pair.split("=", 1) for pair in pairs)


@every_resource
def test_a_file_holds_one_resource_and_is_named_after_it(resource: ResourceFile) -> None:
    assert list(resource.content) == ["resources"]
    assert len(resource.content["resources"]) == 1
    assert len(resource.content["resources"][resource.kind]) == 1
    assert resource.path.name == f"{resource.key}.{SINGULAR[resource.kind]}.yml"


def test_no_key_is_used_for_two_resources() -> None:
    assert max(Counter(each.key for each in resource_files()).values()) == 1


@every_resource
def test_a_resource_has_only_fields_that_its_kind_has(resource: ResourceFile) -> None:
    MODELS[resource.kind](resource.body)


def test_what_is_referred_to_is_there() -> None:
    known = {f"var.{name}" for name in root_file()["variables"]}
    files = resource_files()
    made = {f"resources.{each.kind}.{each.key}" for each in files}
    asked = references(root_file()).union(*(references(each.content) for each in files))
    unknown = {
        each
        for each in asked
        if each not in known
        and not any(each.startswith(f"{one}.") for one in made)
        and not re.fullmatch(r"workspace\.(file_path|current_user\.short_name)|bundle\.\w+", each)
    }
    assert unknown == set()


def test_every_variable_is_explained_and_used() -> None:
    variables = root_file()["variables"]
    assert [name for name, each in variables.items() if not each.get("description")] == []
    asked = references(root_file()).union(*(references(e.content) for e in resource_files()))
    assert [name for name in variables if f"var.{name}" not in asked] == []


@every_resource
def test_every_file_that_a_resource_names_exists(resource: ResourceFile) -> None:
    folder, synced = resource.path.parent, root_file()["sync"]["paths"]
    for text in texts(resource.content):
        named = text.partition("=")[2] if text.startswith("--") else text
        if named.startswith(UPLOADED):
            path = named.removeprefix(UPLOADED)
            assert (ROOT / path).is_file(), f"{text} does not exist"
            assert path.split("/")[0] in synced, f"{text} is not uploaded"
        elif named.endswith((".py", ".lvdash.json")):
            assert (folder / named).is_file(), f"{text} does not exist"
        elif named.endswith(".whl"):
            assert fnmatch(f"../dist/rivermouth-{__version__}-py3-none-any.whl", named)


def test_only_what_the_jobs_need_is_uploaded_beside_the_wheel() -> None:
    assert root_file()["sync"] == {"paths": ["config", "jobs"]}
    assert all((ROOT / path).is_dir() for path in root_file()["sync"]["paths"])


@every_job
def test_every_parameter_of_a_job_is_used_and_every_used_one_is_there(job: ResourceFile) -> None:
    declared = {each["name"] for each in job.body.get("parameters", ())}
    used = set(re.findall(r"\{\{job\.parameters\.(\w+)\}\}", " ".join(arguments(job))))
    assert used == declared


@every_job
def test_the_script_of_a_job_knows_every_option_that_it_is_given(job: ResourceFile) -> None:
    for task in job.body["tasks"]:
        script = job.path.parent / task["spark_python_task"]["python_file"]
        done = subprocess.run(
            [sys.executable, str(script), "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        options = {each.partition("=")[0] for each in task["spark_python_task"]["parameters"]}
        assert [each for each in options if not re.search(rf"{each}\b", done.stdout)] == []


@every_job
def test_a_job_gives_the_configuration_all_that_it_asks_for_and_no_more(job: ResourceFile) -> None:
    asked = set(re.findall(r"\$\{env:(\w+)", CONFIG.read_text(encoding="utf-8")))
    assert set(given(job)) == asked


def test_the_configuration_loads_with_what_the_jobs_give_it() -> None:
    environ = {"KAFKA_BOOTSTRAP": "kafka:9092", "CATALOG": "c", "SCHEMA": "s", "VOLUME": "v"}
    config = load(CONFIG, environ)
    assert config.warehouse == Catalog("c", "s", "v")
    tables = [str(each.target.table) for each in config.pipelines.values()]
    assert tables == ["s.bids", "s.orders"]


@every_job
def test_no_job_runs_twice_at_once_or_tells_nobody_what_it_is_for(job: ResourceFile) -> None:
    assert job.body["max_concurrent_runs"] == 1
    assert job.body["queue"] == {"enabled": True}
    assert job.body["name"].startswith("${bundle.name} ")
    assert job.body["description"]
    assert job.body["tags"] == "${var.tags}"
    assert job.body["email_notifications"] == "${var.emails}"
    assert job.body["webhook_notifications"] == "${var.webhooks}"


@every_job
def test_a_job_has_compute_of_its_own_that_fits_it(job: ResourceFile) -> None:
    clusters = {each["job_cluster_key"]: each for each in job.body.get("job_clusters", ())}
    environments = {each["environment_key"]: each for each in job.body.get("environments", ())}
    for task in job.body["tasks"]:
        if "environment_key" in task:
            assert environments[task["environment_key"]]["spec"]["dependencies"]
            assert "continuous" not in job.body, "serverless compute ends what goes on"
        else:
            cluster = clusters[task["job_cluster_key"]]["new_cluster"]
            assert "autoscale" not in cluster, "a stream wants no autoscaling"
            assert cluster["data_security_mode"] == "DATA_SECURITY_MODE_DEDICATED"
            assert task["libraries"]


def test_a_continuous_job_tells_of_a_backlog_and_retries_as_such_jobs_do() -> None:
    (job,) = (each for each in jobs() if "continuous" in each.body)
    assert {each["metric"] for each in job.body["health"]["rules"]} == {
        "STREAMING_BACKLOG_RECORDS",
        "STREAMING_BACKLOG_SECONDS",
    }
    assert all("max_retries" not in task for task in job.body["tasks"])
    assert "schedule" not in job.body


@pytest.mark.parametrize("target", TARGETS)
def test_at_most_one_ingest_runs_by_itself_and_only_prod_wakes_a_warehouse(target: str) -> None:
    root = root_file()
    defaults = {name: each.get("default") for name, each in root["variables"].items()}
    values = {**defaults, **root["targets"][target].get("variables", {})}
    states = [values["continuous"], values["scheduled"]]
    assert set(states) <= {"PAUSED", "UNPAUSED"}
    assert states.count("UNPAUSED") == (0 if target == "dev" else 1)
    assert values["alerting"] == ("UNPAUSED" if target == "prod" else "PAUSED")


def test_all_alerts_look_at_the_same_moment_so_that_the_warehouse_can_stop() -> None:
    schedules = [each.body["schedule"] for each in resource_files() if each.kind == "alerts"]
    assert schedules == [schedules[0]] * len(schedules)
    assert schedules[0]["quartz_cron_schedule"] == "${var.alert_schedule}"


@every_resource
def test_what_holds_state_is_not_destroyed_by_the_way(resource: ResourceFile) -> None:
    protected = resource.body.get("lifecycle") == {"prevent_destroy": "${var.keep}"}
    assert protected is (resource.kind in HOLDS_STATE)


@every_resource
def test_readers_may_look_at_all_but_credentials_and_scratch(resource: ResourceFile) -> None:
    allowed = [*resource.body.get("permissions", ()), *resource.body.get("grants", ())]
    looks = any("${var.readers}" in texts(each) for each in allowed)
    assert looks is (resource.kind not in ("secret_scopes", "volumes"))


def test_no_file_says_which_workspace_or_person_it_is_for() -> None:
    files = [ROOT / "databricks.yml", CONFIG, *sorted((ROOT / "resources").iterdir())]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"://|\w@\w|^\s*host:|dapi[0-9a-f]|profile:", text, re.MULTILINE), path


def test_the_targets_are_those_that_the_tests_deploy() -> None:
    assert set(root_file()["targets"]) == set(TARGETS)
    assert root_file()["targets"]["prod"]["variables"]["keep"] is True
    assert root_file()["targets"]["prod"]["run_as"] == {"service_principal_name": "${var.runner}"}


def test_the_picture_in_the_docs_is_of_this_dashboard() -> None:
    drawn = (ROOT / "docs" / "pictures" / "dashboard.svg").read_text(encoding="utf-8")
    widgets = [each["widget"] for page in dashboard()["pages"] for each in page["layout"]]
    frames = [each["spec"]["frame"] for each in widgets if "spec" in each]
    said = [frame[key] for frame in frames for key in ("title", "description") if key in frame]
    assert [each for each in said if escape(each) not in drawn] == []
