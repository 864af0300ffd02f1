"""The workspace by itself: what its rooms answer, what its log keeps, how its faults count."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote, urlsplit

import pytest

from tests.bundle.workspace.executor import Outcome, Task
from tests.bundle.workspace.faults import Fault
from tests.bundle.workspace.messages import Resource
from tests.bundle.workspace.workspace import Workspace
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.unit

IMPORT = "/api/2.0/workspace-files/import-file"


def ask(workspace: Workspace, method: str, path: str, body: object = None) -> tuple[int, Resource]:
    """The status and the answer; a body that is not bytes is sent as JSON."""
    sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    parts = urlsplit(workspace.url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port)) as connection:
        connection.request(method, path, sent)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")


def echoes(task: Task) -> Outcome:
    """Prints the arguments; fails with 3 where the first one says so."""
    return Outcome(" ".join(task.arguments), 3 if task.arguments[:1] == ("fail",) else 0)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace(echoes) as running:
        yield running


def settled(workspace: Workspace, run_id: int) -> Resource:
    """The run, when it has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        _, run = ask(workspace, "GET", f"/api/2.2/jobs/runs/get?run_id={run_id}")
        if run["state"]["life_cycle_state"] == "TERMINATED":
            return run
        time.sleep(0.01)
    raise AssertionError(f"run {run_id} goes on")


def job_of(*parameters: str) -> Resource:
    script = {"python_file": "script.py", "parameters": [*parameters]}
    return {
        "name": "job",
        "parameters": [{"name": "whom", "default": "world"}],
        "tasks": [{"task_key": "only", "spark_python_task": script}],
    }


def started(workspace: Workspace, job: Resource, **parameters: str) -> int:
    _, created = ask(workspace, "POST", "/api/2.2/jobs/create", job)
    body = {"job_id": created["job_id"], "job_parameters": parameters}
    _, run = ask(workspace, "POST", "/api/2.2/jobs/run-now", body)
    return int(run["run_id"])


def test_an_unknown_route_is_refused_in_the_platforms_form_and_written_down(
    workspace: Workspace,
) -> None:
    status, answer = ask(workspace, "GET", "/api/2.0/nothing/here")
    assert (status, answer["error_code"]) == (404, "ENDPOINT_NOT_FOUND")
    assert [str(e) for e in workspace.unknown] == [
        "GET /api/2.0/nothing/here -> 404 (unknown route)"
    ]


@pytest.mark.parametrize(
    ("method", "target"), [("CONNECT", "example.com:443"), ("GET", "http://example.com/api")]
)
def test_another_host_is_not_reached_through_it(
    workspace: Workspace, method: str, target: str
) -> None:
    assert ask(workspace, method, target)[0] == 404
    assert [str(e.request) for e in workspace.unknown] == [f"{method} /proxy/{target}"]


def test_a_body_that_lacks_what_the_route_needs_is_the_askers_fault(workspace: Workspace) -> None:
    status, answer = ask(workspace, "POST", "/api/2.1/unity-catalog/schemas", {"name": "s"})
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "catalog_name" in answer["message"]


@pytest.mark.parametrize(
    ("first", "times", "done", "statuses", "made"),
    [
        (1, 1, False, [500, 200, 200], 2),
        (2, 1, False, [200, 500, 200], 2),
        (2, 9, False, [200, 500, 500], 1),
        (1, 1, True, [500, 200, 200], 3),
    ],
)
def test_a_fault_counts_the_requests_that_fit_it(
    workspace: Workspace, first: int, times: int, done: bool, statuses: list[int], made: int
) -> None:
    path = "/api/2.2/jobs/create"
    fault = Fault("POST", path, 500, "INTERNAL_ERROR", first=first, times=times, done=done)
    workspace.server.faults.set([fault])
    ask(workspace, "GET", "/api/2.2/jobs/list")
    assert [ask(workspace, "POST", path, job_of())[0] for _ in statuses] == statuses
    assert len(workspace.stored().get("jobs", [])) == made


def test_a_file_needs_its_folder_and_is_not_overwritten_unasked(workspace: Workspace) -> None:
    target = f"{IMPORT}/{quote('/Workspace/a/b.txt', safe='')}?overwrite="
    assert ask(workspace, "POST", f"{target}false", b"1")[0] == 404
    ask(workspace, "POST", "/api/2.0/workspace/mkdirs", {"path": "/Workspace/a"})
    assert ask(workspace, "POST", f"{target}false", b"1")[0] == 200
    assert ask(workspace, "POST", f"{target}false", b"2")[0] == 409
    assert workspace.tree.read("/Workspace/a/b.txt") == b"1"
    assert ask(workspace, "POST", f"{target}true", b"2")[0] == 200
    assert workspace.tree.read("/Workspace/a/b.txt") == b"2"


def test_a_folder_that_is_not_empty_is_deleted_only_with_all_that_it_holds(
    workspace: Workspace,
) -> None:
    workspace.tree.make_folder("/a/b")
    path = "/api/2.0/workspace/delete"
    assert ask(workspace, "POST", path, {"path": "/a"})[0] == 400
    assert ask(workspace, "POST", path, {"path": "/a", "recursive": True})[0] == 200
    assert list(workspace.tree.nodes) == ["/"]


def test_a_secret_comes_back_in_base64(workspace: Workspace) -> None:
    ask(workspace, "POST", "/api/2.0/secrets/scopes/create", {"scope": "keys"})
    secret = {"scope": "keys", "key": "password", "string_value": "river"}
    ask(workspace, "POST", "/api/2.0/secrets/put", secret)
    _, found = ask(workspace, "GET", "/api/2.0/secrets/get?scope=keys&key=password")
    assert found["value"] == "cml2ZXI="
    assert ask(workspace, "GET", "/api/2.0/secrets/get?scope=keys&key=other")[0] == 404


def test_a_task_gets_the_parameters_of_the_run_and_tells_its_exit_code(
    workspace: Workspace,
) -> None:
    job = job_of("{{job.parameters.whom}}", "{{unknown.name}}")
    for whom, result, output in (
        ("river", "SUCCESS", {"logs": "river {{unknown.name}}"}),
        ("fail", "FAILED", {"logs": "fail {{unknown.name}}", "error": "SystemExit: 3"}),
    ):
        run = settled(workspace, started(workspace, job, whom=whom))
        assert run["state"]["result_state"] == result
        [task] = run["tasks"]
        path = f"/api/2.2/jobs/runs/get-output?run_id={task['run_id']}"
        assert ask(workspace, "GET", path)[1].items() >= output.items()


def waits_for_its_end(task: Task) -> Outcome:
    """A stream: goes on until it is cancelled."""
    return Outcome("cancelled" if task.cancelled.wait(PATIENCE_S) else "nobody cancelled it")


def test_a_second_run_waits_until_the_first_has_ended() -> None:
    with Workspace(waits_for_its_end) as workspace:
        first = started(workspace, job_of())
        _, run = ask(workspace, "GET", f"/api/2.2/jobs/runs/get?run_id={first}")
        _, second = ask(workspace, "POST", "/api/2.2/jobs/run-now", {"job_id": run["job_id"]})
        _, waiting = ask(workspace, "GET", f"/api/2.2/jobs/runs/get?run_id={second['run_id']}")
        assert waiting["state"]["life_cycle_state"] == "QUEUED"
        ask(workspace, "POST", "/api/2.2/jobs/runs/cancel-all", {"job_id": run["job_id"]})
        assert settled(workspace, first)["state"]["result_state"] == "CANCELED"


def test_run_now_refuses_what_it_would_otherwise_overlook(workspace: Workspace) -> None:
    _, created = ask(workspace, "POST", "/api/2.2/jobs/create", job_of())
    for unknown in ({"python_params": ["x"]}, {"job_parameters": {"x": "y"}}):
        status, _ = ask(
            workspace, "POST", "/api/2.2/jobs/run-now", {"job_id": created["job_id"], **unknown}
        )
        assert status == 400
