"""The real CLI against the workspace: a bundle's life, from validate to destroy."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.bundle.cli import Cli
from tests.bundle.expected import ALL_MADE, ALL_NEW, ALL_THERE, counted, job_named
from tests.bundle.workspace.identity import SERVICE_PRINCIPAL
from tests.bundle.workspace.workspace import Workspace

pytestmark = pytest.mark.slow

TARGETS = ("dev", "staging", "prod")


@pytest.fixture
def volume_of_others(workspace: Workspace) -> None:
    """Where the target staging puts its wheel."""
    workspace.rooms.catalog.make_volume("main.landing.wheels")


@pytest.mark.usefixtures("volume_of_others")
@pytest.mark.short(("target",), {("prod",)})
@pytest.mark.parametrize("target", TARGETS)
def test_a_bundle_lives_from_validate_to_destroy(
    cli: Cli, workspace: Workspace, target: str
) -> None:
    before = counted(workspace)
    cli.must("validate", "--strict", "-t", target)
    assert ALL_NEW in cli.must("plan", "-t", target)
    assert counted(workspace) == before, "to plan is not to do"
    cli.must("deploy", "-t", target)
    assert counted(workspace) - before == ALL_MADE
    job_id = job_named(workspace, "greet")["job_id"]
    assert f"/jobs/{job_id}?" in cli.must("summary", "-t", target)
    assert "hello world" in cli.must("run", "greet", "-t", target)
    cli.must("destroy", "--auto-approve", "--var", "keep=false", "-t", target)
    assert counted(workspace) == before
    assert "databricks.yml" not in " ".join(workspace.tree.nodes), "the uploaded files went too"


@pytest.mark.usefixtures("volume_of_others")
@pytest.mark.short(("target",), {("prod",)})
@pytest.mark.parametrize("target", TARGETS)
def test_a_second_deploy_changes_nothing(cli: Cli, workspace: Workspace, target: str) -> None:
    cli.must("deploy", "-t", target)
    assert ALL_THERE in cli.must("plan", "-t", target)
    before = len(workspace.log)
    cli.must("deploy", "-t", target)
    # The wheel, and who may manage the bundle's folder, are sent each time.
    always = re.compile("(PUT|DELETE) /api/2.0/(fs|permissions/directories)/.*")
    assert [each for each in workspace.changes(before) if not always.fullmatch(each)] == []


def test_prod_is_destroyed_only_when_the_operator_lets_its_data_go(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy", "-t", "prod")
    refused = cli.bundle("destroy", "--auto-approve", "-t", "prod")
    assert refused.code == 1
    assert "prevent_destroy" in refused.remarks
    assert counted(workspace) == ALL_MADE, "not even what may go has gone"


def test_another_machine_sees_what_was_deployed_from_this_one(cli: Cli) -> None:
    cli.must("deploy")
    shutil.rmtree(cli.project / ".databricks")
    assert ALL_THERE in cli.must("plan")


def test_dev_is_named_and_paused_so_that_it_disturbs_nobody(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy", "-t", "dev")
    job = job_named(workspace, "watch")
    (alert,) = workspace.rooms.alerts.shelf.all()
    assert job["settings"]["name"] == "[dev deployer] watch"
    assert job["settings"]["continuous"]["pause_status"] == "PAUSED"
    assert alert["schedule"]["pause_status"] == "PAUSED"
    assert workspace.stored()["schemas"] == ["main.dev_deployer_greetings"]


def test_prod_runs_as_the_principal_that_was_looked_up(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy", "-t", "prod")
    job = job_named(workspace, "greet")
    assert job["run_as_user_name"] == SERVICE_PRINCIPAL["applicationId"]


def test_grants_permissions_and_acls_are_those_of_the_files(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy", "-t", "prod")
    assert workspace.rooms.catalog.grants == {
        ("schema", "main.greetings"): {"readers": {"USE_SCHEMA", "SELECT"}},
        ("volume", "main.greetings.files"): {"readers": {"READ_VOLUME"}},
    }
    acls = workspace.rooms.secrets.scopes.get("greeter")["acls"]
    assert acls["readers"] == "READ"
    job_id = str(job_named(workspace, "greet")["job_id"])
    on_the_job = workspace.rooms.permissions.lists["jobs", job_id]
    assert {"group_name": "readers", "permission_level": "CAN_VIEW"} in on_the_job
    assert {"group_name": "operators", "permission_level": "CAN_MANAGE"} in on_the_job


def test_the_dashboard_is_published_with_the_queries_of_its_file(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy")
    (dashboard_id,) = workspace.stored()["dashboards"]
    draft = workspace.rooms.dashboards.drafts.get(dashboard_id)
    file = (cli.project / "overview.lvdash.json").read_text(encoding="utf-8")
    assert json.loads(draft["serialized_dashboard"]) == json.loads(file)
    assert draft["dataset_schema"] == "dev_deployer_greetings"
    assert dashboard_id in workspace.rooms.dashboards.published


def test_strict_validation_refuses_a_key_that_nobody_knows(cli: Cli, workspace: Workspace) -> None:
    job = cli.project / "resources" / "greet.job.yml"
    job.write_text(job.read_text(encoding="utf-8").replace("max_concurrent_runs", "max_runs"))
    refused = cli.bundle("validate", "--strict")
    assert refused.code == 1
    assert "unknown field: max_runs" in refused.answer + refused.remarks
    assert workspace.stored() == {}
