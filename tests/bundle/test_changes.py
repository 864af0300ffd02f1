"""What a deploy does after something changed: in the files, or in the workspace."""

from __future__ import annotations

import pytest

from tests.bundle.cli import Cli
from tests.bundle.expected import ALL_THERE, job_named
from tests.bundle.workspace.workspace import Workspace

pytestmark = pytest.mark.slow

EDITS = (  # a file of the project, what stands in it, what comes instead, what the plan says
    ("resources/greet.job.yml", "default: world", "default: river", "jobs.greet"),
    ("resources/greet.job.yml", "CAN_VIEW", "CAN_MANAGE_RUN", "jobs.greet.permissions"),
    ("resources/greetings.schema.yml", "Greeted people", "People", "schemas.greetings"),
    ("resources/greetings.schema.yml", ", SELECT", "", "schemas.greetings.grants"),
    ("resources/files.volume.yml", "name: files", "name: files\n      comment: x", "volumes.files"),
    ("resources/files.volume.yml", "READ_VOLUME", "WRITE_VOLUME", "volumes.files.grants"),
    ("resources/silence.alert.yml", "double_value: 1", "double_value: 2", "alerts.silence"),
    ("resources/keys.secret_scope.yml", "READ", "WRITE", "secret_scopes.keys.permissions"),
    ("overview.lvdash.json", "SELECT whom", "SELECT upper(whom)", "dashboards.overview"),
)


def edit(cli: Cli, name: str, old: str, new: str) -> None:
    path = cli.project / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name} does not say {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def planned(cli: Cli) -> list[str]:
    """What the next deploy would do, a line each."""
    lines = cli.must("plan").splitlines()
    return sorted(line for line in lines if line.startswith(("create", "update", "delete")))


def test_what_changed_in_the_files_changes_in_the_workspace_and_nothing_else(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy")
    before = workspace.stored()
    for name, old, new, _ in EDITS:
        edit(cli, name, old, new)
    assert planned(cli) == sorted(f"update {resource}" for *_, resource in EDITS)
    cli.must("deploy")
    assert ALL_THERE in cli.must("plan")
    assert workspace.stored() == before, "everything is still the same thing"
    assert "hello river" in cli.must("run", "greet")
    readers = workspace.rooms.catalog.grants["schema", "main.dev_deployer_greetings"]["readers"]
    assert readers == {"USE_SCHEMA"}


def test_what_was_taken_out_of_the_files_is_deleted_after_approval(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy")
    for name in ("silence.alert", "overview.dashboard", "keys.secret_scope"):
        (cli.project / "resources" / f"{name}.yml").unlink()
    unapproved = cli.bundle("deploy")
    assert unapproved.code == 1
    assert "--auto-approve" in unapproved.remarks
    cli.must("deploy", "--auto-approve")
    assert sorted(workspace.stored()) == ["jobs", "schemas", "volumes"]


def test_a_job_that_somebody_edited_is_put_right(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy")
    job = job_named(workspace, "greet")
    job["settings"]["max_concurrent_runs"] = 5
    workspace.rooms.jobs.shelf.put(str(job["job_id"]), job)
    assert planned(cli) == ["update jobs.greet"]
    cli.must("deploy")
    assert job_named(workspace, "greet")["settings"]["max_concurrent_runs"] == 1


def test_a_job_that_somebody_deleted_is_made_anew(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy")
    before = job_named(workspace, "greet")["job_id"]
    workspace.rooms.jobs.shelf.remove(str(before))
    assert planned(cli) == ["create jobs.greet", "create jobs.greet.permissions"]
    cli.must("deploy")
    assert job_named(workspace, "greet")["job_id"] != before
    assert ALL_THERE in cli.must("plan")
