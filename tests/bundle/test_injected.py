"""Deploys that fail on the way, and what the next one makes of it."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest

from tests.bundle.cli import Cli
from tests.bundle.expected import ALL_MADE, ALL_THERE, counted
from tests.bundle.workspace.faults import JOBS_PATH, SCHEMAS_PATH, UPLOAD, Fault, once
from tests.bundle.workspace.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

STATE = "/Workspace/Applications/greeter/state"


def answer_lost(method: str, path: str) -> Fault:
    return Fault(method, path, 500, "INTERNAL_ERROR", times=1, done=True)


def test_a_missing_right_stops_what_needs_it_and_the_next_deploy_heals(
    cli: Cli, workspace: Workspace
) -> None:
    denied = Fault("POST", SCHEMAS_PATH, 403, "PERMISSION_DENIED", "no CREATE SCHEMA on main")
    workspace.server.faults.set([denied])
    refused = cli.bundle("deploy", "-t", "prod")
    assert refused.code == 1
    assert "no CREATE SCHEMA on main (403 PERMISSION_DENIED)" in refused.remarks
    assert sorted(workspace.stored()) == ["alerts", "jobs", "scopes"], "these need no schema"
    workspace.server.faults.set([])
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) == ALL_MADE
    assert ALL_THERE in cli.must("plan", "-t", "prod")


def test_a_deploy_waits_for_nobody_while_another_holds_the_lock(
    cli: Cli, workspace: Workspace
) -> None:
    held = {
        "ID": "5b7e2d0c-9f64-4d0a-8a9e-6c1a7a0f2b11",
        "AcquisitionTime": "2026-11-21T10:00:00Z",
        "User": "other@example.com",
    }
    workspace.tree.make_folder(STATE)
    workspace.tree.write(f"{STATE}/deploy.lock", json.dumps(held).encode(), overwrite=False)
    refused = cli.bundle("deploy", "-t", "prod")
    assert refused.code == 1
    assert "deploy lock acquired by other@example.com" in refused.remarks
    assert workspace.stored() == {}
    assert f"{STATE}/deploy.lock" in workspace.tree.nodes, "it is still the other's"
    cli.must("deploy", "-t", "prod", "--force-lock")
    assert counted(workspace) == ALL_MADE
    assert f"{STATE}/deploy.lock" not in workspace.tree.nodes


def test_a_lock_that_cannot_be_taken_stops_the_deploy_before_it_changes_anything(
    cli: Cli, workspace: Workspace
) -> None:
    taken = Fault("POST", f"{UPLOAD}{STATE}/deploy.lock", 409, "RESOURCE_ALREADY_EXISTS")
    workspace.server.faults.set([taken])
    refused = cli.bundle("deploy", "-t", "prod")
    assert refused.code == 1
    assert "Failed to acquire deployment lock" in refused.remarks
    assert workspace.changes() == []
    workspace.server.faults.set([])
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) == ALL_MADE


@pytest.mark.parametrize(
    "fault",
    [
        once("POST", f"{UPLOAD}/.*[.]whl"),
        once("POST", SCHEMAS_PATH),
        once("POST", JOBS_PATH),
        once("POST", "/api/2.0/lakeview/dashboards/.*/published"),
        once("POST", "/api/2.0/secrets/acls/put"),
        once("POST", f"{UPLOAD}/.*/state/resources.json"),
    ],
    ids=lambda fault: fault.path,
)
def test_the_deploy_after_one_that_broke_in_the_middle_heals(
    cli: Cli, workspace: Workspace, fault: Fault
) -> None:
    workspace.server.faults.set([fault])
    assert cli.bundle("deploy", "-t", "prod").code == 1
    assert [e.status for e in workspace.log if e.status >= 500] == [500], "one, not tried again"
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) == ALL_MADE
    assert ALL_THERE in cli.must("plan", "-t", "prod")


@pytest.mark.parametrize(
    "fault",
    [
        once("POST", JOBS_PATH, 503, "TEMPORARILY_UNAVAILABLE"),
        once("PUT", "/api/2.0/permissions/jobs/.*"),
    ],
    ids=lambda fault: fault.path,
)
def test_what_may_be_asked_twice_is_asked_again_in_the_same_deploy(
    cli: Cli, workspace: Workspace, fault: Fault
) -> None:
    workspace.server.faults.set([fault])
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) == ALL_MADE


def test_a_job_whose_creation_was_never_answered_stays_beside_the_next_one(
    cli: Cli, workspace: Workspace
) -> None:
    """A limit of the platform: creating a job is no idempotent call. The operator deletes one."""
    workspace.server.faults.set([answer_lost("POST", JOBS_PATH)])
    assert cli.bundle("deploy", "-t", "prod").code == 1
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) - ALL_MADE == Counter(jobs=1)


def test_a_schema_whose_creation_was_never_answered_must_be_bound(
    cli: Cli, workspace: Workspace
) -> None:
    """A limit of the platform: its name is taken, and the state knows nothing of it."""
    workspace.server.faults.set([answer_lost("POST", SCHEMAS_PATH)])
    assert cli.bundle("deploy", "-t", "prod").code == 1
    assert "already exists" in cli.bundle("deploy", "-t", "prod").remarks
    bind = ("bind", "greetings", "main.greetings", "--auto-approve")
    cli.must("deployment", *bind, "-t", "prod")
    cli.must("deploy", "-t", "prod")
    assert counted(workspace) == ALL_MADE


def test_a_deploy_that_could_not_keep_its_state_must_be_repeated_from_the_same_folder(
    cli: Cli, workspace: Workspace
) -> None:
    """A limit of the platform: a fresh clone knows nothing of what that deploy made."""
    workspace.server.faults.set([once("POST", f"{UPLOAD}/.*/state/resources.json")])
    assert cli.bundle("deploy", "-t", "prod").code == 1
    shutil.rmtree(cli.project / ".databricks")
    assert "already exists" in cli.bundle("deploy", "-t", "prod").remarks
    assert counted(workspace) - ALL_MADE == Counter(alerts=1, jobs=2)
