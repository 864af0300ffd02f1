"""``bundle run``: parameters, failures, and what --restart does to a run that goes on."""

from __future__ import annotations

import pytest

from tests.bundle.cli import Cli
from tests.bundle.executors import waits_for_its_end
from tests.bundle.workspace.messages import Request, Resource
from tests.bundle.workspace.workspace import Workspace
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


def states(workspace: Workspace) -> list[str]:
    """How each run stands, the oldest first."""
    listed: Resource = workspace.rooms.runs.list_runs(Request.parse("GET", "/", b""))
    found = [run["state"] for run in reversed(listed["runs"])]
    return [state.get("result_state") or state["life_cycle_state"] for state in found]


def assert_becomes(workspace: Workspace, wanted: list[str]) -> None:
    wait_for(lambda: states(workspace) == wanted, f"the runs do not become {wanted}")


def test_parameters_on_the_command_line_reach_the_entry_point(cli: Cli) -> None:
    cli.must("deploy")
    assert "hello river" in cli.must("run", "greet", "--params", "whom=river")


def test_an_entry_point_that_fails_fails_the_command(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy")
    failed = cli.bundle("run", "greet", "--params", "whom=nobody")
    assert failed.code == 1
    assert "TERMINATED FAILED" in failed.remarks
    assert states(workspace) == ["FAILED"]


@pytest.mark.short(("job", "target"), {("greet", "prod"), ("watch", "dev")})
@pytest.mark.parametrize("executor", [waits_for_its_end])
@pytest.mark.parametrize("job", ["greet", "watch"])
@pytest.mark.parametrize("target", ["dev", "prod"])
def test_restart_ends_the_run_that_goes_on_and_begins_another(
    cli: Cli, workspace: Workspace, job: str, target: str
) -> None:
    cli.must("deploy", "-t", target)
    cli.must("run", job, "--no-wait", "-t", target)
    cli.must("run", job, "--restart", "--no-wait", "-t", target)
    assert_becomes(workspace, ["CANCELED", "RUNNING"])


@pytest.mark.parametrize("executor", [waits_for_its_end])
def test_a_second_run_waits_until_the_first_has_ended(cli: Cli, workspace: Workspace) -> None:
    cli.must("deploy")
    cli.must("run", "greet", "--no-wait")
    cli.must("run", "greet", "--no-wait")
    assert states(workspace) == ["RUNNING", "QUEUED"]
    workspace.rooms.runs.started()[0].cancel()
    assert_becomes(workspace, ["CANCELED", "RUNNING"])
