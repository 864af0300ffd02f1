"""The project's own bundle, by the real CLI, with jobs that really run: from Kafka to Delta."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth import __version__
from rivermouth.local.broker import Broker
from rivermouth.local.demo_records import fill
from rivermouth.testing import produce
from tests.bundle.bundle_files import TARGETS, resource_files
from tests.bundle.cli import Cli, alone
from tests.bundle.clone import copied
from tests.bundle.expected import counted, job_named
from tests.bundle.runtime import CATALOG, Runtime
from tests.bundle.workspace.executor import Executor
from tests.bundle.workspace.faults import JOBS_PATH, SCHEMAS_PATH, UPLOAD, once
from tests.bundle.workspace.identity import RUNNER
from tests.bundle.workspace.workspace import Workspace
from tests.waiting import rows_in, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BIDS, BAD_BIDS = 3_000, 3
PROVEN = "0 missing, 0 duplicated"
SCHEMAS = {
    "dev": "dev_deployer_streams",
    "staging": "staging_streams",
    "prod": "streams",
}
KINDS = Counter(each.kind.replace("secret_scopes", "scopes") for each in resource_files())
WITH_LISTS = ("permissions", "grants")  # each is a line of a plan too


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One of our own: the bundle's topics have fixed names."""
    with Broker() as running:
        fill(running.bootstrap_servers, bids=BIDS, changes=1_500, aborted=10)
        yield running


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """One for all targets, whose schemas have names of their own."""
    with Runtime(tmp_path_factory.mktemp("compute")) as started:
        yield started


@pytest.fixture
def executor(runtime: Runtime) -> Executor:
    return runtime


@pytest.fixture
def cli(databricks: Path, workspace: Workspace, broker: Broker, tmp_path: Path) -> Cli:
    environ = {
        **alone(workspace.url, tmp_path / "home"),
        "BUNDLE_VAR_bootstrap_servers": broker.bootstrap_servers,
        "BUNDLE_VAR_catalog": CATALOG,
    }
    return Cli(databricks, copied(tmp_path / "clone"), environ, patience_seconds=500)


def rows(runtime: Runtime, schema: str, table: str) -> int:
    """How many rows a table has; 0 while there is none."""
    return rows_in(runtime.warehouse / f"{schema}.db" / table)


@pytest.mark.short(("target",), {("prod",)})
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_lives_from_validate_to_destroy_and_its_jobs_do_their_work(
    cli: Cli, workspace: Workspace, runtime: Runtime, target: str
) -> None:
    here, schema = ("-t", target), SCHEMAS[target]
    cli.must("validate", "--strict", *here)
    assert f"Plan: {planned()} to add, 0 to change, 0 to delete" in cli.must("plan", *here)
    assert workspace.stored() == {}, "to plan is not to do"
    cli.must("deploy", *here)
    assert counted(workspace) == KINDS
    assert_no_drift(cli, workspace, target)
    job_id = job_named(workspace, "verify")["job_id"]
    assert f"/jobs/{job_id}?" in cli.must("summary", *here)

    chosen = (*here, "--params", "select=bids")
    cli.must("run", "ingest_scheduled", *chosen)
    assert rows(runtime, schema, "bids") == BIDS - BAD_BIDS
    assert rows(runtime, schema, "bids_quarantine") == BAD_BIDS
    assert PROVEN in cli.must("run", "verify", *chosen)

    cli.must("destroy", "--auto-approve", "--var", "keep=false", *here)
    assert workspace.stored() == {}
    assert workspace.tree.files() == []


def planned() -> int:
    """How many lines a plan of everything has."""
    lists = sum(name in each.body for each in resource_files() for name in WITH_LISTS)
    managed = sum(each.kind == "secret_scopes" for each in resource_files())
    return len(resource_files()) + lists + managed


def assert_no_drift(cli: Cli, workspace: Workspace, target: str) -> None:
    unchanged = f"Plan: 0 to add, 0 to change, 0 to delete, {planned()} unchanged"
    assert unchanged in cli.must("plan", "-t", target)
    before = len(workspace.log)
    cli.must("deploy", "-t", target)
    always = re.compile("PUT /api/2.0/permissions/directories/.*")
    assert [each for each in workspace.changes(before) if not always.fullmatch(each)] == []


@pytest.mark.thorough
def test_a_job_that_is_restarted_ends_its_first_run_and_doubles_nothing(
    cli: Cli, workspace: Workspace, runtime: Runtime
) -> None:
    schema = "restarted"
    here = ("--var", f"schema={schema}", "-t", "prod")
    cli.must("deploy", *here)
    cli.must("run", "ingest_scheduled", *here)
    cli.must("run", "ingest_scheduled", "--no-wait", *here)
    cli.must("run", "ingest_scheduled", "--restart", *here)
    assert rows(runtime, schema, "bids") == BIDS - BAD_BIDS, "nothing came, nothing was doubled"
    ended = [each.state["result_state"] for each in workspace.rooms.runs.started()]
    assert ended == ["SUCCESS", "CANCELED", "SUCCESS"]


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_a_deploy_that_was_refused_locked_out_or_broken_is_healed_by_the_next(
    cli: Cli, workspace: Workspace, target: str
) -> None:
    locks = [once("POST", f"{UPLOAD}/.*/deploy.lock", 409, "ALREADY_EXISTS")]
    faults = [
        *(locks if target != "dev" else []),  # in development mode the CLI takes no lock
        once("POST", SCHEMAS_PATH, 403, "PERMISSION_DENIED"),
        once("POST", JOBS_PATH),
        once("POST", f"{UPLOAD}/.*[.]whl"),
    ]
    for fault in faults:
        before = len(workspace.log)
        workspace.server.faults.set([fault])
        assert cli.bundle("deploy", "-t", target).code == 1
        assert fault.status in [each.status for each in workspace.log[before:]]
    cli.must("deploy", "-t", target)
    assert counted(workspace) == KINDS
    assert_no_drift(cli, workspace, target)


@pytest.mark.thorough
def test_the_continuous_job_goes_on_until_it_is_restarted_and_then_from_there(
    cli: Cli, workspace: Workspace, runtime: Runtime, broker: Broker
) -> None:
    chosen = ("--var", "continuous=UNPAUSED", "--var", "scheduled=PAUSED", "-t", "prod")
    schema = "continuous"
    here = ("--var", f"schema={schema}", *chosen)
    cli.must("deploy", *here)
    cli.must("run", "ingest", "--no-wait", *here)
    wait_for(lambda: rows(runtime, schema, "bids") == BIDS - BAD_BIDS, "no row came")
    cli.must("run", "ingest", "--restart", "--no-wait", *here)
    good = b'{"auction": 1, "bidder": 2, "price": 3}'
    produce(broker.bootstrap_servers, "bids", [(None, good, n % 4) for n in range(40)])
    wait_for(lambda: rows(runtime, schema, "bids") == BIDS - BAD_BIDS + 40, "no row came")
    first, second = workspace.rooms.runs.started()
    wait_for(lambda: "result_state" in first.state, "the cancelled run does not end")
    assert first.state["result_state"] == "CANCELED"
    assert second.is_active
    second.cancel()
    wait_for(lambda: not second.is_active, "it does not end")
    assert PROVEN in cli.must("run", "verify", *here)


@pytest.mark.thorough
def test_a_table_that_was_wound_back_halts_its_pipeline_until_somebody_accepts_that(
    cli: Cli, workspace: Workspace, runtime: Runtime
) -> None:
    target = ("--var", "schema=wound_back", "-t", "prod")
    here = (*target, "--params", "select=bids")
    cli.must("deploy", *target)
    cli.must("run", "ingest_scheduled", *here)
    before = rows(runtime, "wound_back", "bids")
    assert before >= BIDS - BAD_BIDS
    bids = DeltaTable(str(runtime.warehouse / "wound_back.db" / "bids"))
    bids.restore(bids.version() - 1)
    assert rows(runtime, "wound_back", "bids") == 0
    halted = cli.bundle("run", "ingest_scheduled", *here)
    assert halted.code == 1
    newest = workspace.rooms.runs.started()[-1]
    assert "RM411" in newest.output(newest.tasks[0])["logs"]
    cli.must("run", "resume", *target, "--params", "select=bids,accept=restore")
    cli.must("run", "ingest_scheduled", *here)
    cli.must("run", "maintain", *here)
    assert rows(runtime, "wound_back", "bids") == before
    assert PROVEN in cli.must("run", "verify", *here)


@pytest.mark.thorough
def test_prod_runs_as_its_principal_and_staging_and_dev_as_whoever_deployed(
    cli: Cli, workspace: Workspace
) -> None:
    runs_as = {}
    for target in TARGETS:
        cli.must("deploy", "-t", target)
        runs_as[target] = job_named(workspace, "verify")["run_as_user_name"]
        cli.must("destroy", "--auto-approve", "--var", "keep=false", "-t", target)
    assert runs_as["prod"] == RUNNER["applicationId"]
    assert runs_as["dev"] == runs_as["staging"] == "deployer@example.com"


def test_prod_keeps_what_holds_state_and_lists_who_may_do_what(
    cli: Cli, workspace: Workspace
) -> None:
    cli.must("deploy", "-t", "prod")
    refused = cli.bundle("destroy", "--auto-approve", "-t", "prod")
    assert refused.code == 1
    assert "prevent_destroy" in refused.remarks
    assert counted(workspace) == KINDS
    grants = workspace.rooms.catalog.grants
    assert grants["schema", f"{CATALOG}.streams"]["rivermouth-readers"] == {"USE_SCHEMA", "SELECT"}
    assert "MODIFY" in grants["schema", f"{CATALOG}.streams"]["rivermouth-operators"]
    assert set(grants["volume", f"{CATALOG}.streams.state"]) == {"rivermouth-operators"}
    acls = workspace.rooms.secrets.scopes.get("rivermouth-prod")["acls"]
    assert acls["rivermouth-operators"] == "MANAGE"
    job_id = str(job_named(workspace, "ingest")["job_id"])
    levels = {
        each["group_name"]: each["permission_level"]
        for each in workspace.rooms.permissions.lists["jobs", job_id]
        if "group_name" in each
    }
    assert levels == {"rivermouth-operators": "CAN_MANAGE", "rivermouth-readers": "CAN_VIEW"}


TOLD = """      keep: true
      webhooks: {on_failure: [{id: pager}]}
      emails: {on_streaming_backlog_exceeded: [team@example.com]}
      alerted: [{destination_id: pager}]
"""


def test_what_a_target_says_in_its_variables_reaches_jobs_and_alerts(
    cli: Cli, workspace: Workspace
) -> None:
    file = cli.project / "databricks.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("      keep: true\n", TOLD), encoding="utf-8")
    cli.must("deploy", "-t", "prod")
    ingest = job_named(workspace, "ingest")["settings"]
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
