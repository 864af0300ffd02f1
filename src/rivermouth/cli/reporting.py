"""``report``: the page about all pipelines, written or served."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import ConfigFile, known_secrets, load_config
from rivermouth.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from rivermouth.config import Config

Output = Annotated[
    Path | None,
    typer.Option("-o", metavar="FILE", help="Where to write it; default: report.html."),
]
Commits = Annotated[
    int, typer.Option("--commits", min=1, metavar="N", help="The newest N commits of each table.")
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples", min=0, metavar="N", help="Show N bad records of each pipeline, as they are."
    ),
]
Serve = Annotated[
    bool, typer.Option("--serve", help="Serve it to this machine instead, until Ctrl-C.")
]
Port = Annotated[
    str, typer.Argument(metavar="[:PORT]", help="Where to serve it; default: a free port.")
]


def report(
    file: ConfigFile,
    where: Port = "",
    output: Output = None,
    commits: Commits = 1000,
    samples: Samples = 0,
    serve: Serve = False,
) -> None:
    """Write a page with charts of all pipelines.

    State, lag, throughput, skew, bad records, versions and proofs, in one file that needs no
    network. Reads the logs of the tables and asks Kafka; starts no JVM, and writes nothing else.
    """
    if (where and not serve) or (output and serve):
        raise ConfigError(("report: write -o FILE, or --serve and perhaps a port, as :8080",))
    port = _port(where)
    config = load_config(file)
    if serve:
        _serve(config, port, commits, samples)
        return
    target = output or Path("report.html")
    content = _made(config, commits, samples).encode()
    try:
        target.write_bytes(content)
    except OSError as fault:
        raise SetupError(
            "the report cannot be written",
            where=str(target),
            found=fault.strerror or str(fault),
            remedy="Name another file with -o",
        ) from fault
    typer.echo(f"{target}: {len(content) / 1000:,.0f} kB. Open it in a browser.")


def _made(config: Config, commits: int, samples: int, refresh_s: int = 0) -> str:
    from rivermouth.report.page import page
    from rivermouth.report.reading import read_report
    from rivermouth.verification import record_states

    secrets = known_secrets()
    proofs = record_states(config, secrets)
    found = read_report(config, commits=commits, samples=samples, secrets=secrets, proofs=proofs)
    return page(found, refresh_s)


def _serve(config: Config, port: int, commits: int, samples: int) -> None:
    from rivermouth.report.serving import REFRESH_S, PageServer

    with PageServer(port, lambda: _made(config, commits, samples, REFRESH_S)) as server:
        server.page()  # what is wrong is told here, and not to a browser
        typer.echo(f"The report is at {server.url} until Ctrl-C.")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _port(text: str) -> int:
    """The port that is named; 0: a free one. Raises ConfigError."""
    number = text.removeprefix(":") or "0"
    if number.isdecimal() and number.isascii() and int(number) < 65_536:
        return int(number)
    raise ConfigError((f"report: {text}: write a port, as :8080",))
