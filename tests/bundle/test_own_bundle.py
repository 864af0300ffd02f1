"""The project's own bundle, by the real CLI, with jobs that really run: from Kafka to Delta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.local.demo_records import fill
from rivermouth.testing import produce
from tests.bundle.bundle_files import TARGETS
from tests.bundle.cli import Cli
from tests.bundle.runtime import CATALOG, Runtime
from tests.bundle.workspace.executor import Executor
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
def cli(cli: Cli, broker: Broker) -> Cli:
    """It deploys what reads from the broker and writes where Spark has its tables."""
    own = {
        "BUNDLE_VAR_bootstrap_servers": broker.bootstrap_servers,
        "BUNDLE_VAR_catalog": CATALOG,
    }
    return replace(cli, environ={**cli.environ, **own}, patience_seconds=500)


def rows(runtime: Runtime, schema: str, table: str) -> int:
    """How many rows a table has; 0 while there is none."""
    return rows_in(runtime.warehouse / f"{schema}.db" / table)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_lives_from_validate_to_destroy_and_its_jobs_do_their_work(
    cli: Cli, workspace: Workspace, runtime: Runtime, target: str
) -> None:
    here, schema = ("-t", target), SCHEMAS[target]
    cli.must("validate", "--strict", *here)
    cli.must("deploy", *here)

    chosen = (*here, "--params", "select=bids")
    cli.must("run", "ingest_scheduled", *chosen)
    assert rows(runtime, schema, "bids") == BIDS - BAD_BIDS
    assert rows(runtime, schema, "bids_quarantine") == BAD_BIDS
    assert PROVEN in cli.must("run", "verify", *chosen)

    cli.must("destroy", "--auto-approve", "--var", "keep=false", *here)
    assert workspace.stored() == {}


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
