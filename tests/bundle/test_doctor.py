"""``doctor --databricks`` against a workspace, through the real SDK: every line, good and bad."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from rivermouth.databricks.doctor import check_workspace
from rivermouth.databricks.workspace import missing_sdk
from rivermouth.local.server import HOST, free_port
from rivermouth.operate.doctor import Check
from tests.bundle.workspace.faults import Fault
from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Request
from tests.bundle.workspace.queries import WAREHOUSES
from tests.bundle.workspace.sdk import client_of, environ_of
from tests.bundle.workspace.workspace import Workspace

pytestmark = pytest.mark.unit

CONFIG = """\
version: 1
kafka:
  bootstrap.servers: localhost:1
  sasl.username: ${secret:kafka/user}
  sasl.password: ${secret:kafka/password}
  ssl.key.password: ${secret:tls/key}
warehouse: {catalog: main}
pipelines:
  bids:
    source: {topics: [bids], format: json}
    schema: auction BIGINT
    target: {table: bronze.bids}
"""
NAMES = [
    *("config", "workspace", "catalog main", "schema main.rivermouth", "schema main.bronze"),
    *("volume main.rivermouth.state", "secrets kafka", "secrets tls"),
]
ANY = ("SQL warehouse", "runtime")  # what there is of them, where none is named
NEEDED = {"USE_SCHEMA", "SELECT", "MODIFY", "CREATE_TABLE"}
SMALL = str(WAREHOUSES[0]["id"])


@dataclass
class World:
    """A workspace in which all is there that CONFIG needs, until a test spoils it."""

    workspace: Workspace
    file: Path

    def __post_init__(self) -> None:
        catalog = self.workspace.rooms.catalog
        catalog.make_volume("main.rivermouth.state")
        catalog.schemas.put("main.bronze", {"full_name": "main.bronze"})
        self.grant("catalog", "main", "account users", "USE_CATALOG", "USE_SCHEMA", "BROWSE")
        for schema in ("main.rivermouth", "main.bronze"):
            self.grant("schema", schema, USER, "SELECT", "MODIFY")
            self.grant("schema", schema, "rivermouth-operators", "CREATE_TABLE")
            self.grant("schema", schema, "others", "ALL_PRIVILEGES")
        self.grant("volume", "main.rivermouth.state", USER, "ALL_PRIVILEGES")
        for scope, keys in {"kafka": ("user", "password", "other"), "tls": ("key",)}.items():
            self.workspace.rooms.secrets.create_scope(_request(scope=scope))
            for key in keys:
                secret = _request(scope=scope, key=key, string_value="hunter2")
                self.workspace.rooms.secrets.put_secret(secret)
        for name, version in {"new": "18.x-scala2.13", "old": "16.4.x-scala2.12"}.items():
            self.workspace.rooms.clusters.shelf.put(name, {"spark_version": version})

    def grant(self, kind: str, full: str, who: str, *privileges: str) -> None:
        self.workspace.rooms.catalog.grants.setdefault((kind, full), {})[who] = set(privileges)

    def refuse(self, path: str, status: int = 403, code: str = "PERMISSION_DENIED") -> None:
        self.workspace.server.faults.set([Fault("GET", path, status, code, "hunter3 said")])

    def checks(self, runtime: str = "", warehouse: str = "", cluster: str = "") -> list[Check]:
        environ = {"DATABRICKS_RUNTIME_VERSION": runtime}
        url = self.workspace.url
        asked = check_workspace(
            self.file, lambda: client_of(url), environ, warehouse=warehouse, cluster=cluster
        )
        return list(asked)


def _request(**body: str) -> Request:
    return Request.parse("POST", "/", json.dumps(body).encode())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    file = tmp_path / "lake.yml"
    file.write_text(CONFIG, encoding="utf-8")
    with Workspace() as running:
        yield World(running, file)
    assert running.unknown == [], "no route knows these"
    asked = [exchange.request.path for exchange in running.log]
    assert "/api/2.0/secrets/get" not in asked, "the value of a secret is never fetched"


def test_what_is_all_there_is_ok_line_by_line(world: World) -> None:
    checks = world.checks()
    assert [check.name for check in checks] == [*NAMES, *ANY]
    assert [check for check in checks if not check.ok] == []
    assert [check.found for check in checks[1:]] == [
        f"{world.workspace.url} as {USER}",
        "USE CATALOG",
        *["USE SCHEMA, SELECT, MODIFY, CREATE TABLE"] * 2,
        "READ VOLUME, WRITE VOLUME",
        "password, user: there, not read",
        "key: there, not read",
        "Serverless Starter Warehouse, small",
        "2 to choose from",
    ]


def test_who_owns_a_thing_may_do_everything_with_it(world: World) -> None:
    catalog = world.workspace.rooms.catalog
    catalog.grants.pop(("schema", "main.bronze"))
    catalog.schemas.put("main.bronze", {"full_name": "main.bronze", "owner": USER})
    assert Check("schema main.bronze", True, "owned") in world.checks()


SENDING = """
  alerts:
    source: {topics: [bids], format: json}
    schema: auction BIGINT
    target: {%s}
"""
TO_KAFKA, ONCE = "kafka: alerts", "kafka: alerts, delivery: at-most-once"
TO_CALL = "foreach_partition: 'shop.sinks:store'"


@pytest.mark.parametrize(
    ("target", "mode", "ok", "found"),
    [
        (
            TO_KAFKA,
            None,
            True,
            "at-least-once, on clusters in dedicated mode, clusters in standard",
        ),
        (TO_KAFKA, "USER_ISOLATION", True, "at-least-once, on clusters in standard mode"),
        (TO_CALL, None, True, "at-least-once, only on clusters in dedicated mode"),
        (TO_CALL, "SINGLE_USER", True, "at-least-once, on clusters in dedicated mode"),
        (TO_CALL, "DATA_SECURITY_MODE_AUTO", True, "only on clusters in dedicated mode"),
        (TO_CALL, "DATA_SECURITY_MODE_STANDARD", False, "RM209 pipeline alerts, foreach_partition"),
        (ONCE, None, False, "RM209 pipeline alerts, delivery: at-most-once"),
    ],
)
def test_a_pipeline_that_sends_is_told_where_it_can_run(
    world: World, target: str, mode: str | None, ok: bool, found: str
) -> None:
    world.file.write_text(CONFIG + SENDING % target, encoding="utf-8")
    facts = {"spark_version": "18.x-scala2.13", "data_security_mode": mode or ""}
    world.workspace.rooms.clusters.shelf.put("chosen", facts)

    checks = world.checks(cluster="chosen" if mode else "")

    [check] = [each for each in checks if each.name == "pipeline alerts"]
    assert check.ok is ok, check
    assert found in check.found
    assert check.ok or check.fix


Spoil = Callable[[World], object]
UC = "/api/2.1/unity-catalog"
BROKEN: list[tuple[str, Spoil, str, str]] = [
    (
        "workspace",
        lambda it: it.refuse("/api/2.0/preview/scim/v2/Me", 401, "UNAUTHENTICATED"),
        "the workspace does not accept the login",
        "Log in again: databricks auth login",
    ),
    (
        "workspace",
        lambda it: it.refuse("/api/2.0/preview/scim/v2/Me"),
        "the workspace refuses it: no permission",
        "Ask an admin for the permission",
    ),
    (
        "catalog main",
        lambda it: setattr(it.workspace.rooms.catalog, "catalogs", ()),
        "there is no such catalog, or it is hidden",
        "CREATE CATALOG `main`",
    ),
    (
        "catalog main",
        lambda it: it.grant("catalog", "main", "account users", "USE_SCHEMA"),
        "lacks USE CATALOG",
        f"GRANT USE CATALOG ON CATALOG `main` TO `{USER}`",
    ),
    (
        "catalog main",
        lambda it: it.refuse(f"{UC}/catalogs/main"),
        f"{USER} may not see it",
        "Ask its owner",
    ),
    (
        "catalog main",
        lambda it: it.refuse(f"{UC}/catalogs/main", 400, "BAD_REQUEST"),
        "the workspace refuses it: BadRequest",
        "Try again",
    ),
    (
        "schema main.bronze",
        lambda it: it.workspace.rooms.catalog.schemas.remove("main.bronze"),
        "there is no such schema, or it is hidden",
        "CREATE SCHEMA `main`.`bronze`",
    ),
    (
        "schema main.bronze",
        lambda it: it.grant("schema", "main.bronze", USER, "SELECT"),
        "lacks MODIFY",
        f"GRANT MODIFY ON SCHEMA `main`.`bronze` TO `{USER}`",
    ),
    (
        "schema main.rivermouth",
        lambda it: it.workspace.rooms.catalog.grants.pop(("schema", "main.rivermouth")),
        "lacks SELECT, MODIFY, CREATE TABLE",
        "GRANT SELECT, MODIFY, CREATE TABLE ON SCHEMA `main`.`rivermouth` TO",
    ),
    (
        "schema main.rivermouth",
        lambda it: it.refuse(f"{UC}/effective-permissions/schema/main.rivermouth"),
        f"{USER} may not see it",
        "Ask its owner",
    ),
    (
        "volume main.rivermouth.state",
        lambda it: it.workspace.rooms.catalog.volumes.remove("main.rivermouth.state"),
        "there is no such volume, or it is hidden",
        "CREATE VOLUME `main`.`rivermouth`.`state`",
    ),
    (
        "volume main.rivermouth.state",
        lambda it: it.grant("volume", "main.rivermouth.state", USER, "READ_VOLUME"),
        "lacks WRITE VOLUME",
        "GRANT WRITE VOLUME ON VOLUME `main`.`rivermouth`.`state` TO",
    ),
    (
        "secrets kafka",
        lambda it: it.workspace.rooms.secrets.scopes.remove("kafka"),
        "there is no such scope",
        "databricks secrets create-scope kafka",
    ),
    (
        "secrets tls",
        lambda it: it.workspace.rooms.secrets.scopes.put("tls", {"secrets": {}}),
        "has no key key",
        "databricks secrets put-secret tls key",
    ),
    (
        "secrets kafka",
        lambda it: it.workspace.rooms.secrets.scopes.put("kafka", {"secrets": {"x": "y"}}),
        "has no key password, user",
        "databricks secrets put-secret kafka password",
    ),
]


@pytest.mark.parametrize(("name", "spoil", "found", "fix"), BROKEN)
def test_what_is_missing_is_the_one_line_that_fails_with_its_fix(
    world: World, name: str, spoil: Spoil, found: str, fix: str
) -> None:
    spoil(world)
    [failed] = [check for check in world.checks() if not check.ok]
    assert (failed.name, failed.found) == (name, found)
    assert fix in failed.fix
    assert "hunter" not in repr(failed)


def test_a_scope_that_may_not_be_read_fails_with_the_command_that_allows_it(world: World) -> None:
    world.refuse("/api/2.0/secrets/list")
    failed = [check for check in world.checks() if not check.ok]
    assert [check.name for check in failed] == ["secrets kafka", "secrets tls"]
    assert failed[0].found == f"{USER} may not see it"
    assert failed[0].fix == f"databricks secrets put-acl kafka {USER} READ"


def test_a_folder_is_no_warehouse_there(world: World) -> None:
    world.file.write_text(CONFIG.replace("{catalog: main}", "./lake"), encoding="utf-8")
    checks = world.checks()
    [failed] = [check for check in checks if not check.ok]
    assert failed.name == "warehouse"
    assert failed.found.endswith("/lake is no catalog")
    assert [check.name for check in checks][-4:] == ["secrets kafka", "secrets tls", *ANY]


def test_a_configuration_that_is_refused_is_the_only_line(world: World) -> None:
    world.file.write_text(CONFIG.replace("format: json", "formt: json"), encoding="utf-8")
    [check] = world.checks()
    assert (check.name, check.ok) == ("config", False)
    assert "RM104" in check.found


def no_package() -> NoReturn:
    raise missing_sdk()


def no_login() -> NoReturn:
    raise ValueError("default auth: hunter2")


@pytest.mark.parametrize(
    ("client", "found", "fix"),
    [
        (no_package, "RM206 a workspace needs databricks-sdk", "rivermouth[databricks]"),
        (no_login, "no workspace is configured", "Set DATABRICKS_HOST and DATABRICKS_TOKEN"),
        (
            lambda: client_of(f"http://{HOST}:{free_port()}"),
            "the workspace does not answer",
            "Check DATABRICKS_HOST and the network",
        ),
    ],
)
def test_where_no_workspace_is_reached_nothing_more_is_asked(
    world: World, client: Callable[[], NoReturn], found: str, fix: str
) -> None:
    config, failed = check_workspace(world.file, client, {}, warehouse=SMALL, cluster="new")
    assert config.ok
    assert (failed.name, failed.ok) == ("workspace", False)
    assert failed.found.startswith(found)
    assert fix in failed.fix
    assert "hunter" not in repr(failed)


@pytest.mark.parametrize(
    ("path", "key", "ok", "found", "fix"),
    [
        ("", SMALL, True, "small: RUNNING", ""),
        ("", "none", False, "there is no SQL warehouse none", "databricks warehouses list"),
        (".*/warehouses/.*", SMALL, False, f"{USER} may not see it", "CAN USE"),
    ],
)
def test_a_sql_warehouse_is_looked_at_where_it_is_named(
    world: World, path: str, key: str, ok: bool, found: str, fix: str
) -> None:
    world.refuse(path)
    check = world.checks(warehouse=key)[-2]
    assert (check.name, check.ok, check.found) == ("SQL warehouse", ok, found)
    assert fix in check.fix


@pytest.mark.parametrize(
    ("path", "key", "ok", "found", "fix"),
    [
        ("", "new", True, "18.x-scala2.13", ""),
        ("", "old", False, "16.4.x-scala2.12", "Use Databricks Runtime 17.3 or later"),
        ("", "none", False, "there is no cluster none", "databricks clusters list"),
        (".*/clusters/get", "new", False, f"{USER} may not see it", "CAN ATTACH TO"),
    ],
)
def test_the_runtime_of_a_cluster_is_looked_at_where_it_is_named(
    world: World, path: str, key: str, ok: bool, found: str, fix: str
) -> None:
    world.refuse(path)
    check = world.checks(cluster=key)[-1]
    assert (check.name, check.ok, check.found) == ("cluster", ok, found)
    assert fix in check.fix


@pytest.mark.parametrize(
    ("version", "ok"),
    [
        *(("17.3", True), ("18.x-photon-scala2.13", True), ("19.0", True), ("client.4.9", True)),
        *(("16.4", False), ("17.2", False), ("client.3.1", False), ("custom:mine", False)),
    ],
)
def test_on_a_cluster_its_own_runtime_is_looked_at(world: World, version: str, ok: bool) -> None:
    check = world.checks(runtime=version)[-1]
    assert (check.name, check.ok, check.found) == ("runtime", ok, version)
    assert "or later" in check.fix


def test_where_neither_is_named_there_must_be_one_that_is_supported(world: World) -> None:
    rooms = world.workspace.rooms
    rooms.clusters.offered = ["16.4.x-scala2.12"]
    for each in WAREHOUSES:
        rooms.warehouses.shelf.remove(each["id"])
    failed = [check for check in world.checks() if not check.ok]
    assert [(check.name, check.found) for check in failed] == [
        ("SQL warehouse", "none is visible"),
        ("runtime", "none of the offered ones is supported"),
    ]
    assert "CAN USE" in failed[0].fix
    assert "Databricks Runtime 17.3 or later" in failed[1].fix


Doctor = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def doctor(world: World, tmp_path: Path) -> Doctor:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rivermouth", "doctor", *words]
        environ = environ_of(world.workspace.url, tmp_path)
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    return run


def test_the_command_shows_a_line_for_each_and_ends_with_0(doctor: Doctor, world: World) -> None:
    done = doctor(str(world.file), "--databricks", "--warehouse", SMALL, "--cluster", "new")
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    shown = [line for line in lines if not line.startswith(" " * 6)]
    expected = [f"OK   {name} " for name in (*NAMES, "SQL warehouse", "cluster")]
    assert [line[: len(start)] for line, start in zip(shown, expected, strict=True)] == expected
    assert last == "OK. Next: databricks bundle deploy"


def test_the_command_ends_with_2_where_something_fails(doctor: Doctor, world: World) -> None:
    world.workspace.rooms.catalog.grants.clear()
    done = doctor(str(world.file), "--databricks")
    assert done.returncode == 2
    assert "FAIL schema main.bronze" in done.stdout
    assert done.stdout.splitlines()[-1] == "FAILED: 4 of the checks; fix the first one first"
    shown = [line for line in done.stdout.splitlines() if str(world.file) not in line]
    assert [line for line in shown if len(line) > 80] == []


def test_the_command_needs_a_configuration(doctor: Doctor) -> None:
    done = doctor("--databricks")
    assert done.returncode == 2
    assert "CONFIG" in done.stderr
