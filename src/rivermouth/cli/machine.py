"""The commands about this machine: ``doctor``, ``broker``, ``registry``, ``store``, ``demo``, and
those that write files for others: ``bundle``, ``cluster``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermouth.cli.settings import known_secrets
from rivermouth.run.starting import Stop

if TYPE_CHECKING:
    from rivermouth.local.broker import Broker
    from rivermouth.local.registry import LocalRegistry
    from rivermouth.local.s3 import LocalS3
    from rivermouth.operate.doctor import Check


_MARK = {True: "OK  ", False: "FAIL"}

OptionalConfig = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG]", help="Check what this file needs; without it, what the demo needs."
    ),
]
InWorkspace = Annotated[
    bool, typer.Option("--databricks", help="Check the workspace, not this machine.")
]
WarehouseId = Annotated[
    str,
    typer.Option(
        "--warehouse",
        metavar="ID",
        envvar="DATABRICKS_WAREHOUSE_ID",
        help="With --databricks: also check this SQL warehouse.",
    ),
]
ClusterId = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="ID",
        envvar="DATABRICKS_CLUSTER_ID",
        help="With --databricks: also check the runtime of this cluster.",
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")]
Folder = Annotated[
    Path | None, typer.Option("--dir", help="Keep the data there; default: delete it at the end.")
]
DemoPath = Annotated[Path, typer.Option("--dir", help="Deleted and created again by each demo.")]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep the broker running afterwards, until Ctrl-C.")
]


def doctor(
    file: OptionalConfig = None,
    databricks: InWorkspace = False,
    warehouse: WarehouseId = "",
    cluster: ClusterId = "",
) -> None:
    """Check this machine, or what a configuration needs. Exit code 2 if a check fails."""
    if databricks and file is None:
        raise typer.BadParameter(
            "it needs CONFIG, which names what to check", param_hint="--databricks"
        )
    from rivermouth.local.commands import typed

    if databricks and file is not None:
        from rivermouth.databricks.doctor import check_workspace

        checks = check_workspace(file, warehouse=warehouse, cluster=cluster)
        following = "databricks bundle deploy"
    else:
        checks = _machine(file)
        following = typed("run", file) if file else typed("demo")
    failed = _show(checks)
    if failed:
        typer.echo(f"FAILED: {failed} of the checks; fix the first one first")
        raise typer.Exit(2)
    typer.echo(f"OK. Next: {following}")


def _machine(file: Path | None) -> Iterator[Check]:
    from rivermouth.local.jars import Downloading
    from rivermouth.operate.doctor import DEMO_JARS, RUN_JARS, check_config, check_machine

    yield from check_machine(RUN_JARS if file else DEMO_JARS, Downloading(sys.stderr))
    if file is not None:
        yield from check_config(file, known_secrets())


def _show(checks: Iterable[Check]) -> int:
    from rivermouth.run.text import console, wrapped

    out, failed = console(), 0
    for check in checks:
        style = "green" if check.ok else "bold red"
        out.print(_MARK[check.ok], style=style, end=" ")
        first = f"{check.name:<15} "
        out.print(wrapped(check.found, " " * 21, " " * 5 + first)[5:], soft_wrap=True)
        if not check.ok:
            failed += 1
            out.print(wrapped(f"to do: {check.fix}", " " * 21), soft_wrap=True)
    return failed


def broker(port: Port = 0, folder: Folder = None) -> None:
    """Run a real Kafka broker on this machine, in foreground."""
    from rivermouth.local.broker import Broker

    def told(running: Broker) -> dict[str, str]:
        kept = f"kept in {running.directory}" if folder else "deleted when it stops"
        return {"bootstrap.servers": running.bootstrap_servers, "data": kept}

    _serve("broker", "Kafka", Broker(folder, port or None), told)


def registry(port: Port = 0) -> None:
    """Run a real schema registry on this machine, in memory."""
    from rivermouth.local.registry import LocalRegistry

    def told(running: LocalRegistry) -> dict[str, str]:
        return {"schema_registry.url": running.url}

    _serve("registry", "the schema registry", LocalRegistry(port or None), told)


def _serve(
    name: str,
    what: str,
    server: Broker | LocalRegistry | LocalS3,
    told: Callable[[Any], dict[str, str]],
) -> None:
    """Run a server of the jars ``name`` until it is to stop."""
    from rivermouth.errors import SetupError
    from rivermouth.local.jars import Downloading, jars
    from rivermouth.local.server import alive
    from rivermouth.run.text import say

    jars(name, progress=Downloading(sys.stderr))
    stop = Stop(f"stopping the {name}")
    stop.listen()
    say(f"starting {what}…")
    with server as running:
        lines = {**told(running), "stop": f"Ctrl-C, or kill {os.getpid()}"}
        wide = max(map(len, lines)) + 2
        for label, text in lines.items():
            typer.echo(f"{label + ':':<{wide}}{text}")
        while not stop.event.wait(0.5):
            if not alive(running.pid):
                raise SetupError(f"the {name} has ended unexpectedly", remedy=f"Read {running.log}")
    typer.echo("stopped")


def store(port: Port = 0, folder: Folder = None) -> None:
    """Run a real object store on this machine, in foreground."""
    from rivermouth.local.s3 import LocalS3

    def told(running: LocalS3) -> dict[str, str]:
        kept = f"kept in {running.directory}" if folder else "deleted when it stops"
        options = {f"storage.{name}": value for name, value in running.options.items()}
        return {"warehouse": f"{running.address}/any/prefix", **options, "data": kept}

    _serve("store", "the object store", LocalS3(folder, port or None), told)


DemoWarehouse = Annotated[
    str,
    typer.Option(
        "--warehouse", metavar="URL", help="Keep the tables below this prefix of a bucket."
    ),
]
DemoStore = Annotated[
    bool, typer.Option("--store", help="Keep the tables in a local object store.")
]


DemoCluster = Annotated[
    bool,
    typer.Option("--cluster", help="The same, and run the tasks on a local Spark cluster."),
]


def demo(
    folder: DemoPath = Path("rivermouth-demo"),
    keep: Keep = False,
    warehouse: DemoWarehouse = "",
    in_store: DemoStore = False,
    cluster: DemoCluster = False,
) -> None:
    """Kill a driver at the worst moment, and verify the tables."""
    from rivermouth.local.demo import Story

    if warehouse and (in_store or cluster):
        hint = f"--warehouse and --{'cluster' if cluster else 'store'}"
        raise typer.BadParameter("it is one or the other", param_hint=hint)

    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # as for Ctrl-C, the broker is stopped
    story = Story(folder, typer.echo, warehouse=warehouse, store=in_store, cluster=cluster)
    story.tell(_until_stopped if keep else None)


def _until_stopped() -> None:
    stop = Stop("stopping the broker")
    stop.listen()
    stop.event.wait()


Project = Annotated[
    Path, typer.Argument(metavar="DIR", help="New or empty; its name is the project's name.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Your configuration; default: an example.")
]

bundle = typer.Typer(
    help="About Databricks asset bundles.", no_args_is_help=True, rich_markup_mode=None
)


@bundle.callback()
def about() -> None:
    """About Databricks asset bundles."""


class Example(str, Enum):
    """The formats that the records of an example may have."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


FormatOption = Annotated[
    Example, typer.Option("--format", help="Of the records of the example.", show_choices=True)
]


@bundle.command("init")
def init(folder: Project, config: ConfigOption = None, form: FormatOption = Example.JSON) -> None:
    """Write a project around a configuration: bundle, jobs, a test, a CI workflow."""
    from rivermouth.databricks.project import scaffold
    from rivermouth.local.commands import quoted

    files = scaffold(folder, config, form.value)
    for each in files:
        typer.echo(f"  {folder / each}")
    typer.echo(f"OK: {len(files)} files. Next: cd {quoted(folder)} && make test")


PackFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Made where it is missing.")]
PackAt = Annotated[
    str,
    typer.Option(
        "--at", metavar="URL", help="Where the cluster finds DIR; default: under its own path."
    ),
]

cluster = typer.Typer(
    help="About Spark clusters of your own.", no_args_is_help=True, rich_markup_mode=None
)


@cluster.callback()
def about_clusters() -> None:
    """About Spark clusters of your own."""


@cluster.command("pack")
def pack(folder: PackFolder, at: PackAt = "") -> None:
    """Write what spark-submit needs: jars, packages, jobs, settings."""
    from rivermouth.cluster.submit import DEFAULTS, packed_for_submit
    from rivermouth.databricks.project import jobs
    from rivermouth.local.commands import quoted
    from rivermouth.local.jars import Downloading, jars
    from rivermouth.run.starting import require_spark

    require_spark()
    jars("spark", progress=Downloading(sys.stderr))
    where = folder.absolute()
    files = packed_for_submit(where, at.rstrip("/") or str(where), jobs())
    for each in files:
        typer.echo(f"  {folder / each}")
    submit = f"spark-submit --properties-file {quoted(folder / DEFAULTS)}"
    typer.echo(f"OK: {len(files)} files. Next: {submit} \\")
    typer.echo(f"  {quoted(folder / 'jobs/ingest.py')} --config CONFIG")
