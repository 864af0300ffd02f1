"""Deploy, run, verify and destroy each target from a clean clone, and write down what is said.

    python -m tests.bundle.transcript

puts it between the two marks of docs/databricks.md. What differs at every run is put in words:
ports, times, folders of the machine.
"""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from rivermouth.local.broker import Broker
from rivermouth.local.demo_records import fill
from rivermouth.local.jars import read_lock
from tests.bundle.bundle_files import ROOT, TARGETS
from tests.bundle.cli import Cli, alone
from tests.bundle.runtime import CATALOG, Runtime
from tests.bundle.workspace.workspace import Workspace

PAGE = ROOT / "docs" / "databricks.md"
MARKS = ("<!-- transcript: begin -->\n", "<!-- transcript: end -->\n")
BIDS, CHANGES = 30_000, 6_000
STEPS = (
    "validate --strict",
    "deploy",
    "run ingest_scheduled",
    "run verify",
    "run ingest_scheduled --restart",
    "plan",
    "destroy --auto-approve --var keep=false",
)


def transcript(folder: Path) -> Iterator[str]:
    """The lines of the transcript; everything that is made lies in ``folder``."""
    clone = folder / "clone"
    must("git", "clone", "--quiet", str(ROOT), str(clone))
    binary = Path(must(sys.executable, str(ROOT / "tools" / "databricks_cli" / "build.py")))
    yield from heading(binary, must("git", "-C", str(clone), "rev-parse", "--short", "HEAD"))
    with Broker() as broker:
        fill(broker.bootstrap_servers, bids=BIDS, changes=CHANGES, aborted=40)
        with Runtime(folder / "compute") as runtime, Workspace(runtime) as workspace:
            environ = {
                **alone(workspace.url, folder / "home"),
                "BUNDLE_VAR_bootstrap_servers": broker.bootstrap_servers,
                "BUNDLE_VAR_catalog": CATALOG,
            }
            cli = Cli(binary, clone, environ, patience_seconds=900)
            known = {workspace.url: "https://WORKSPACE", str(folder / "compute"): ""}
            for target in TARGETS:
                yield from of_target(cli, target, {**known, broker.bootstrap_servers: "BROKER"})
        assert workspace.unknown == []


def heading(binary: Path, commit: str) -> Iterator[str]:
    jars = {jar.coordinate.name: jar.coordinate.version for jar in read_lock()["broker"]}
    parts = (
        must(str(binary), "version"),
        f"Python {platform.python_version()}",
        f"Spark {version('pyspark')}",
        f"Delta {version('delta-spark')}",
        f"Kafka {jars['kafka_2.13']}",
    )
    day = datetime.now(timezone.utc).date().isoformat()
    yield f"{day}, commit {commit}, {', '.join(parts)};"
    yield f"{BIDS:,} bids and {CHANGES:,} changes of orders in the two topics.\n"


def of_target(cli: Cli, target: str, known: dict[str, str]) -> Iterator[str]:
    yield f"### {target}\n\n```text"
    for number, step in enumerate(STEPS):
        print(f"{target}: {step}", file=sys.stderr, flush=True)
        command, *arguments = shlex.split(step)
        finished = cli.bundle(command, *arguments, "-t", target)
        yield f"{chr(10) if number else ''}$ databricks bundle {step} -t {target}"
        yield from plain(finished.remarks + finished.answer, known)
        if finished.code:
            raise SystemExit(f"{target}: {step}: {finished}")
    yield "```\n"


def plain(said: str, known: dict[str, str]) -> Sequence[str]:
    """The lines without what differs at every run, and without empty ones."""
    for found, word in known.items():
        said = said.replace(found, word)
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", said)
    return [line.rstrip() for line in said.splitlines() if line.strip()]


def must(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rivermouth-transcript-") as folder:
        lines = list(transcript(Path(folder)))
    page = PAGE.read_text(encoding="utf-8")
    before, mark, rest = page.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    assert mark, f"{PAGE} has no mark for the beginning"
    assert end, f"{PAGE} has no mark for the end"
    PAGE.write_text(f"{before}{mark}\n{chr(10).join(lines)}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
