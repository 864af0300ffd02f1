"""Secrets, asked of a workspace through the real SDK: both ways behave alike."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from databricks.sdk.dbutils import RemoteDbUtils

from rivermouth.config import Secrets
from rivermouth.databricks.workspace import of_dbutils, of_workspace, secrets_here
from rivermouth.errors import SecretUnavailable
from rivermouth.local.server import HOST, free_port
from tests.bundle.workspace.faults import Fault
from tests.bundle.workspace.messages import Request
from tests.bundle.workspace.sdk import client_of, config_of, environ_of
from tests.bundle.workspace.workspace import Workspace

pytestmark = pytest.mark.unit

VALUE = 'a "b\\c" é\n'
ASKED = "/api/2.0/secrets/get"


def put(workspace: Workspace, **secret: str) -> None:
    rooms, scope = workspace.rooms.secrets, "kafka"
    if scope not in rooms.scopes:
        rooms.create_scope(_request({"scope": scope}))
    rooms.put_secret(_request({"scope": scope, **secret}))


def _request(body: dict[str, str]) -> Request:
    return Request.parse("POST", "/", json.dumps(body).encode())


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as running:
        put(running, key="password", string_value=VALUE)
        yield running


Way = Callable[[str], Secrets]
WAYS: dict[str, Way] = {
    "workspace": lambda url: of_workspace(lambda: client_of(url)),
    # dbutils as the SDK has it where there is no cluster's own: the same calls.
    "dbutils": lambda url: of_dbutils(lambda: RemoteDbUtils(config_of(url))),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture
def secrets(way: Way, workspace: Workspace) -> Secrets:
    return way(workspace.url)


def refusal(secrets: Secrets, scope: str = "kafka", key: str = "password") -> SecretUnavailable:
    with pytest.raises(SecretUnavailable) as caught:
        secrets(scope, key)
    return caught.value


def test_a_secret_is_told_as_the_text_that_was_stored(secrets: Secrets) -> None:
    assert secrets("kafka", "password") == VALUE


def test_a_changed_secret_is_told_at_the_next_use(secrets: Secrets, workspace: Workspace) -> None:
    assert secrets("kafka", "password") == VALUE
    put(workspace, key="password", string_value="new")
    assert secrets("kafka", "password") == "new"


@pytest.mark.parametrize(("scope", "key"), [("kafka", "user"), ("kafak", "password")])
def test_a_scope_or_key_that_does_not_exist_is_named(
    secrets: Secrets, scope: str, key: str
) -> None:
    error = refusal(secrets, scope, key)
    assert str(error).startswith(f"RM207 {scope}/{key}: there is no such scope or key. Check names")
    assert error.exit_code == 2


FAULTS = [
    (403, "PERMISSION_DENIED", "you may not read this scope"),
    (401, "UNAUTHENTICATED", "the workspace does not accept the login"),
    (400, "BAD_REQUEST", "the workspace refuses it: BadRequest"),
]


@pytest.mark.parametrize(("status", "code", "what"), FAULTS)
def test_a_refusal_names_scope_and_key_and_repeats_nothing_that_was_said(
    secrets: Secrets, workspace: Workspace, status: int, code: str, what: str
) -> None:
    workspace.server.faults.set([Fault("GET", ASKED, status, code, "hunter2 said")])
    error = refusal(secrets)
    assert (error.what, error.where, bool(error.remedy)) == (what, "kafka/password", True)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "hunter2" not in "".join(traceback.format_exception(error))


def test_a_value_that_is_not_text_is_refused_and_not_shown(
    secrets: Secrets, workspace: Workspace
) -> None:
    put(workspace, key="password", bytes_value="aHVudGVy/w==")
    error = refusal(secrets)
    assert error.what == "its value is not text in UTF-8"
    assert "hunter" not in "".join(traceback.format_exception(error))


def test_a_workspace_that_is_not_there_does_not_answer(way: Way) -> None:
    assert refusal(way(f"http://{HOST}:{free_port()}")).what == "the workspace does not answer"


def test_no_secret_is_in_what_the_sdk_logs(
    secrets: Secrets, workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    put(workspace, key="password", string_value="hunter2hunter2")
    with caplog.at_level(logging.DEBUG):
        assert secrets("kafka", "password") == "hunter2hunter2"
    assert ASKED in caplog.text, "the log is on"
    assert "hunter2" not in caplog.text
    assert "aHVudGVy" not in caplog.text


ASKS = """
import sys
from rivermouth.databricks.workspace import secrets_here
secrets = secrets_here()
assert "databricks.sdk" not in sys.modules, "imported before anything was asked"
try:
    print(secrets("kafka", "password"), end="")
except Exception as error:
    print(error)
finally:
    print(sorted({"databricks.sdk.runtime", "pyspark"} & {*sys.modules}), file=sys.stderr)
"""

Asks = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def asks(workspace: Workspace, tmp_path: Path) -> Asks:
    def run(code: str = ASKS, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {**environ_of(workspace.url, tmp_path), **environ}
        words = [sys.executable, "-c", code]
        return subprocess.run(words, env=known, capture_output=True, text=True, check=True)

    return run


def test_elsewhere_than_on_a_cluster_the_workspace_of_the_environment_is_asked(asks: Asks) -> None:
    done = asks()
    assert (done.stdout, done.stderr) == (VALUE, "[]\n")


def test_on_a_cluster_dbutils_of_its_runtime_is_asked(asks: Asks) -> None:
    done = asks(DATABRICKS_RUNTIME_VERSION="18.1")
    assert done.stdout == VALUE
    assert "databricks.sdk.runtime" in done.stderr


@pytest.mark.takes_long("18.1")
@pytest.mark.parametrize("version", ["", "18.1"])
def test_without_a_workspace_the_error_says_how_to_name_one(asks: Asks, version: str) -> None:
    none = {"DATABRICKS_HOST": "", "DATABRICKS_TOKEN": "", "PATH": ""}
    said = asks(**none, DATABRICKS_RUNTIME_VERSION=version).stdout
    assert said.startswith("RM207 kafka/password: no workspace is configured. Set DATABRICKS_HOST")


@pytest.mark.parametrize("version", ["", "18.1"])
def test_without_the_package_one_line_says_what_to_install(asks: Asks, version: str) -> None:
    blocked = "import sys\nsys.modules.update({'databricks.sdk': None})\n"
    code = blocked + ASKS.replace('"databricks.sdk" not in sys.modules', "True")
    said = asks(code, DATABRICKS_RUNTIME_VERSION=version).stdout
    assert said == (
        "RM206 a workspace needs databricks-sdk, which is not installed. "
        "Install rivermouth with its extra: pip install 'rivermouth[databricks]'\n"
    )


def test_nothing_is_asked_before_the_first_secret_is() -> None:
    secrets_here({"DATABRICKS_HOST": "http://127.0.0.1:9"})
    secrets_here({"DATABRICKS_RUNTIME_VERSION": "18.1"})
