"""The object stores of others that tests speak to beside s3proxy: ``make stores`` builds them once.

They lie in the user's cache, in folders named after their versions. versitygw is built by the Go of
the Databricks CLI, Azurite comes by npm and needs node. What fails is one line, and exit code 2.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rivermouth.errors import SetupError
from rivermouth.local.scratch import cache_folder, writing
from tools.databricks_cli.build import (
    NO_ROOM,
    OF_GO,
    Reason,
    failure,
    fetched_go,
    isolated,
    machines_go,
    run,
)

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
AZURITE = "azurite@3.37.0"
_ON = "2026-11-01"
"""npm takes what Azurite needs in the versions of that day."""
OF_NPM = (
    NO_ROOM,
    Reason(
        "ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|network",
        "npm cannot reach its registry",
        "Check the network, or name a registry in npm's configuration",
    ),
)


def versitygw(environ: Mapping[str, str] = os.environ) -> Path:
    """Its binary. Raises SetupError."""

    def build(workshop: Path) -> None:
        ours = {**isolated(workshop, environ), "GOBIN": str(workshop / "made")}
        go = machines_go(ours) or fetched_go(workshop / "go", ours)
        done = run(go, "install", "-trimpath", "-ldflags=-s -w", VERSITYGW, environ=ours)
        if done.returncode != 0:
            raise failure(done.stdout, OF_GO, "versitygw cannot be built")

    return made("versitygw", VERSITYGW, build, environ) / "versitygw"


def azurite(environ: Mapping[str, str] = os.environ) -> Path:
    """The program that node runs. Raises SetupError."""

    def install(workshop: Path) -> None:
        if not all(shutil.which(each, path=environ.get("PATH")) for each in ("npm", "node")):
            raise SetupError("Azurite needs npm and node", remedy="Install Node.js 20 or newer")
        place = ("--prefix", str(workshop / "made"), f"--cache={workshop / 'npm'}")
        quiet = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error")
        options = ("--ignore-scripts", "--omit=dev", "--omit=optional", f"--before={_ON}")
        done = run("npm", "install", *place, *quiet, *options, AZURITE, environ=environ)
        if done.returncode != 0:
            raise failure(done.stdout, OF_NPM, "npm cannot install Azurite")

    program = Path("node_modules", "azurite", "dist", "src", "blob", "main.js")
    return made("azurite", f"{AZURITE} {_ON}", install, environ) / program


def made(
    name: str,
    version: str,
    make: Callable[[Path], None],
    environ: Mapping[str, str],
    kind: str = "stores",
) -> Path:
    """The folder ``made`` that ``make`` leaves in its workshop, kept under ``version``."""
    kept = cache_folder(environ) / kind / version.replace("/", "-").replace(" ", "-")
    if kept.exists():
        return kept
    print(f"{kind}: making {name} (once, some minutes)…", file=sys.stderr, flush=True)
    with writing(kept.parent):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=kept.parent) as workshop:
            (Path(workshop) / "made").mkdir()
            make(Path(workshop))
            if not kept.exists():  # others may have made it meanwhile
                (Path(workshop) / "made").rename(kept)
    return kept


def main() -> int:
    """Make both, and print where they are."""
    try:
        print(versitygw(), azurite(), sep="\n")
    except SetupError as error:
        print(f"stores: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
