"""The command line as one app; only here does an error become an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn

import typer

from rivermouth import __version__
from rivermouth.cli import (
    accepting,
    asking,
    completing,
    examples,
    inferring,
    looking,
    machine,
    maintaining,
    replaying,
    reporting,
    running,
    settings,
)
from rivermouth.errors import RivermouthError

EPILOG = (
    "Exit codes: 0 ok, 1 failed, 2 wrong usage, configuration or setup, 3 a guard halted the "
    "pipeline or verify found a fault, 5 some pipelines failed."
)

app = typer.Typer(
    name="rivermouth",
    help="Kafka to Delta, exactly once.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(ctx: typer.Context, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:  # a shell only asks what may follow
        typer.echo(f"rivermouth {__version__}")
        raise typer.Exit


@app.callback()
def rivermouth(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version


app.command("init")(inferring.init)
app.command("run")(running.run)
app.command("resume")(accepting.resume)
app.command("accept-deletes")(accepting.accept_deletes)
app.command("replay")(replaying.replay)
app.command("status")(asking.status)
app.command("topic")(asking.topic)
app.command("plan")(looking.plan)
app.command("preview")(looking.preview)
app.command("peek")(looking.peek)
app.command("history")(looking.history)
app.command("at")(looking.at)
app.command("report")(reporting.report)
app.command("verify")(asking.verify)
app.command("sql")(asking.sql)
app.command("maintain")(maintaining.maintain)
app.add_typer(asking.offsets, name="offsets")
app.add_typer(inferring.schema, name="schema")
app.command("validate")(settings.validate)
app.add_typer(settings.config, name="config")
app.add_typer(machine.bundle, name="bundle")
app.add_typer(machine.cluster, name="cluster")
app.command("doctor")(machine.doctor)
app.command("broker")(machine.broker)
app.command("registry")(machine.registry)
app.command("store")(machine.store)
app.command("demo")(machine.demo)
app.command("completion")(completing.completion)


def _add_examples(commands: typer.Typer, words: str = "") -> None:
    """Let the help of each command end with its examples; ``words`` stand before its name."""
    for each in commands.registered_commands:
        each.epilog = examples.epilog(f"{words}{each.name}")
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _add_examples(group.typer_instance, f"{words}{group.name} ")


_add_examples(app)


def main(arguments: Sequence[str] | None = None, command: Callable[..., object] = app) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    completing.prepare()
    try:
        command(list(arguments) if arguments is not None else None, prog_name="rivermouth")
    except RivermouthError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as fault:  # a defect: keep the traceback, print one line
        sys.stderr.write(f"{_unexpected(fault)}\n")
        sys.exit(1)
    sys.exit(0)


def _unexpected(fault: Exception) -> str:
    from rivermouth.local.scratch import scratch_root

    log = scratch_root() / "errors.log"
    message = f"unexpected {type(fault).__name__}: {str(fault).partition(chr(10))[0]}"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(fault)))
    except OSError as unwritten:
        return f"{message}. Its traceback could not be written to {log}: {unwritten.strerror}"
    return f"{message}. The traceback is in {log}"
