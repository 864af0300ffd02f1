"""The project's own bundle, deployed by the real CLI: what is there then, and what heals."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from rivermouth import __version__
from tests.bundle.asking import dashboard
from tests.bundle.bundle_files import KINDS, TARGETS, resource_files
from tests.bundle.cli import Cli
from tests.bundle.workspace.faults import JOBS_PATH, SCHEMAS_PATH, UPLOAD, Fault, once
from tests.bundle.workspace.identity import RUNNER
from tests.bundle.workspace.workspace import Workspace

pytestmark = pytest.mark.slow

PROD = ("-t", "prod")
DESTROY = ("destroy", "--auto-approve", "--var", "keep=false")
STATE = f"{UPLOAD}/.*/state/resources.json"
WITH_LISTS = ("permissions", "grants")  # each is a line of a plan too


def planned() -> int:
    """How many lines a plan of everything has."""
    lists = sum(name in each.body for each in resource_files() for name in WITH_LISTS)
    managed = sum(each.kind == "secret_scopes" for each in resource_files())
    return len(resource_files()) + lists + managed


def check_nothing_is_left_to_do(cli: Cli, workspace: Workspace, target: str) -> None:
    unchanged = f"Plan: 0 to add, 0 to change, 0 to delete, {planned()} unchanged"
    assert unchanged in cli.must("plan", "-t", target)
    before = len(workspace.log)
    cli.must("deploy", "-t", target)
    always = re.compile("PUT /api/2.0/permissions/directories/.*")
    assert [each for each in workspace.changes(before) if not always.fullmatch(each)] == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_planned_deployed_once_and_destroyed(
    cli: Cli, workspace: Workspace, target: str
) -> None:
    here = ("-t", target)
    cli.must("validate", "--strict", *here)
    assert f"Plan: {planned()} to add, 0 to change, 0 to delete" in cli.must("plan", *here)
    assert workspace.stored() == {}, "to plan is not to do"
    cli.must("deploy", *here)
    assert workspace.counts() == KINDS
    job = workspace.job("verify")
    assert f"/jobs/{job['job_id']}?" in cli.must("summary", *here)
    runner = RUNNER["applicationId"] if target == "prod" else "deployer@example.com"
    assert job["run_as_user_name"] == runner
    shutil.rmtree(cli.project / ".databricks")  # as in another clone
    check_nothing_is_left_to_do(cli, workspace, target)
    cli.must(*DESTROY, *here)
    assert workspace.stored() == {}
    assert workspace.tree.files() == []


def test_prod_keeps_what_holds_state_and_lists_who_may_do_what(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy", *PROD)
    refused = cli.bundle("destroy", "--auto-approve", *PROD)
    assert refused.code == 1
    assert "prevent_destroy" in refused.remarks
    assert workspace.counts() == KINDS
    grants = workspace.rooms.catalog.grants
    assert grants["schema", "main.streams"]["rivermouth-readers"] == {"USE_SCHEMA", "SELECT"}
    assert "MODIFY" in grants["schema", "main.streams"]["rivermouth-operators"]
    assert set(grants["volume", "main.streams.state"]) == {"rivermouth-operators"}
    acls = workspace.rooms.secrets.scopes.get("rivermouth-prod")["acls"]
    assert acls["rivermouth-operators"] == "MANAGE"
    job_id = str(workspace.job("ingest")["job_id"])
    levels = {
        each["group_name"]: each["permission_level"]
        for each in workspace.rooms.permissions.lists["jobs", job_id]
        if "group_name" in each
    }
    assert levels == {"rivermouth-operators": "CAN_MANAGE", "rivermouth-readers": "CAN_VIEW"}


def test_the_dashboard_is_published_with_the_queries_of_its_file(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy", *PROD)
    [key] = workspace.stored()["dashboards"]
    draft = workspace.rooms.dashboards.drafts.get(key)
    assert json.loads(draft["serialized_dashboard"]) == dashboard()
    assert (draft["dataset_catalog"], draft["dataset_schema"]) == ("main", "streams")
    assert key in workspace.rooms.dashboards.published


VARIABLES = """      keep: true
      webhooks: {on_failure: [{id: pager}]}
      emails: {on_streaming_backlog_exceeded: [team@example.com]}
      alerted: [{destination_id: pager}]
"""


def test_what_a_target_says_in_its_variables_reaches_jobs_and_alerts(
    cli: Cli, workspace: Workspace
) -> None:
    file = cli.project / "databricks.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("      keep: true\n", VARIABLES), encoding="utf-8")
    cli.must("deploy", *PROD)
    ingest = workspace.job("ingest")["settings"]
    assert ingest["webhook_notifications"] == {"on_failure": [{"id": "pager"}]}
    assert ingest["email_notifications"] == {"on_streaming_backlog_exceeded": ["team@example.com"]}
    for alert in workspace.rooms.alerts.shelf.all():
        subscriptions = alert["evaluation"]["notification"]["subscriptions"]
        assert subscriptions == [{"destination_id": "pager"}]
        assert alert["schedule"]["pause_status"] == "UNPAUSED"


def test_a_roll_back_deploys_what_it_builds_not_the_newest_wheel_that_lies_there(
    cli: Cli, workspace: Workspace
) -> None:
    newer = cli.project / "dist" / "rivermouth-9.0.0-py3-none-any.whl"
    newer.parent.mkdir()
    newer.write_bytes(b"of another commit")
    cli.must("deploy")
    uploaded = [path for path in workspace.tree.files() if path.endswith(".whl")]
    assert [path.rpartition("/")[2] for path in uploaded] == [
        f"rivermouth-{__version__}-py3-none-any.whl"
    ]


def test_a_deploy_without_the_brokers_is_refused_and_says_what_is_missing(
    cli: Cli, workspace: Workspace
) -> None:
    environ = {name: cli.environ[name] for name in cli.environ if "bootstrap" not in name}
    refused = Cli(cli.binary, cli.project, environ).bundle("deploy")
    assert refused.code == 1
    assert "bootstrap_servers" in refused.answer + refused.remarks
    assert workspace.stored() == {}


BREAKS = {
    "locked out": once("POST", f"{UPLOAD}/.*/deploy.lock", 409, "ALREADY_EXISTS"),
    "no right": once("POST", SCHEMAS_PATH, 403, "PERMISSION_DENIED"),
    "wheel": once("POST", f"{UPLOAD}/.*[.]whl"),
    "jobs": once("POST", JOBS_PATH),
    "dashboard": once("POST", "/api/2.0/lakeview/dashboards/.*/published"),
    "scope": once("POST", "/api/2.0/secrets/acls/put"),
    "state": once("POST", STATE),
}


@pytest.mark.parametrize("fault", BREAKS.values(), ids=BREAKS)
def test_a_deploy_that_was_refused_locked_out_or_broken_is_healed_by_the_next(
    cli: Cli, workspace: Workspace, fault: Fault
) -> None:
    workspace.server.faults.set([fault])
    assert cli.bundle("deploy", *PROD).code == 1
    assert fault.status in [each.status for each in workspace.log]
    cli.must("deploy", *PROD)
    assert workspace.counts() == KINDS
    check_nothing_is_left_to_do(cli, workspace, "prod")


def test_a_schema_whose_creation_was_never_answered_is_bound(
    cli: Cli, workspace: Workspace
) -> None:
    workspace.server.faults.set([once("POST", SCHEMAS_PATH, done=True)])
    assert cli.bundle("deploy", *PROD).code == 1
    assert "already exists" in cli.bundle("deploy", *PROD).remarks
    cli.must("deployment", "bind", "rivermouth", "main.streams", "--auto-approve", *PROD)
    cli.must("deploy", *PROD)
    assert workspace.counts() == KINDS


def test_a_job_whose_creation_was_never_answered_is_there_twice(
    cli: Cli, workspace: Workspace
) -> None:
    workspace.server.faults.set([once("POST", JOBS_PATH, done=True)])
    assert cli.bundle("deploy", *PROD).code == 1
    cli.must("deploy", *PROD)
    assert workspace.counts() - KINDS == {"jobs": 1}


def test_another_clone_does_not_know_what_a_deploy_made_that_could_not_keep_its_state(
    cli: Cli, workspace: Workspace
) -> None:
    workspace.server.faults.set([once("POST", STATE)])
    assert cli.bundle("deploy", *PROD).code == 1
    shutil.rmtree(cli.project / ".databricks")
    assert "already exists" in cli.bundle("deploy", *PROD).remarks
