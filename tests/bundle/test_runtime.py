"""The compute by itself: what a script finds when it runs, classic and serverless."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bundle.runtime import CATALOG, Runtime
from tests.bundle.workspace.executor import Outcome, Task
from tests.bundle.workspace.messages import Resource
from tests.waiting import PATIENCE_S, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parent / "project"
SCRIPT, WHEEL = "/Workspace/b/files/jobs/script.py", "/Workspace/b/greeter-0.1.0-py3-none-any.whl"
JOB: Resource = {
    "environments": [
        {
            "environment_key": "wheel",
            "spec": {"environment_version": "5", "dependencies": [WHEEL]},
        }
    ],
    "job_clusters": [
        {"job_cluster_key": "one", "new_cluster": {"spark_version": "18.x-scala2.13"}}
    ],
}
CLASSIC: Resource = {"job_cluster_key": "one", "libraries": [{"whl": WHEEL}]}
SERVERLESS: Resource = {"environment_key": "wheel"}
SEES = f"""
import os, sys
import greeter
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
table = "{CATALOG}.landing.seen"
session.sql(f"CREATE TABLE IF NOT EXISTS {{table}} (id BIGINT) USING delta")
session.range(1).write.format("delta").mode("append").saveAsTable(table)
rows = session.table(table).count()
with open(sys.argv[2].partition("=")[2], encoding="utf-8") as file:
    read = file.read()
known = {{name: os.environ.get(name) for name in ("IS_SERVERLESS", "DATABRICKS_RUNTIME_VERSION")}}
print({{"greeter": greeter.__file__, "session": type(session).__module__, "rows": rows,
       "read": read, "arguments": sys.argv[1:], **known}})
sys.exit(rows)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file.read_bytes()


def task(wheel: bytes, script: str, compute: Resource, *arguments: str) -> Task:
    """A task of a workspace that holds the script, the wheel and a file beside the script."""
    files = {SCRIPT: script.encode(), WHEEL: wheel, "/Workspace/b/files/note.txt": b"a note"}
    asked = {"python_file": SCRIPT, "parameters": list(arguments)}
    return Task(
        run_id=1,
        settings={"task_key": "t", "spark_python_task": asked, **compute},
        job=JOB,
        values={},
        host="http://127.0.0.1:9",
        read_file=files.__getitem__,
        paths=lambda: list(files),
        schemas=lambda: [f"{CATALOG}.landing", "main.elsewhere"],
        cancelled=threading.Event(),
    )


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    with Runtime(tmp_path / "compute") as started:
        yield started


@pytest.mark.thorough
def test_a_script_finds_its_wheel_its_files_and_the_tables_of_the_run_before(
    wheel: bytes, runtime: Runtime, tmp_path: Path
) -> None:
    arguments = ("x/Workspace/stays", "--note=/Workspace/b/files/note.txt")
    for run, (compute, session, version, serverless) in enumerate(
        (
            (SERVERLESS, "pyspark.sql.connect.session", "client.5", "TRUE"),
            (CLASSIC, "pyspark.sql.session", "18.2", None),
        ),
        start=1,
    ):
        outcome = runtime(task(wheel, SEES, compute, *arguments))
        seen = ast.literal_eval(outcome.output.splitlines()[-1])
        assert seen["session"] == session
        assert (seen["DATABRICKS_RUNTIME_VERSION"], seen["IS_SERVERLESS"]) == (version, serverless)
        assert Path(seen["greeter"]).is_relative_to(tmp_path / "compute" / "environments")
        assert seen["arguments"][0] == arguments[0]
        assert seen["read"] == "a note"
        assert seen["rows"] == outcome.exit_code == run, "the table outlives its process"


@pytest.mark.thorough
def test_a_script_that_goes_on_is_ended_when_its_run_is_cancelled(
    wheel: bytes, runtime: Runtime, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    script = f"""
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
pathlib.Path({str(ready)!r}).touch()
time.sleep(300)
"""
    going_on = task(wheel, script, CLASSIC)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(runtime(going_on)))
    thread.start()
    wait_for(ready.exists)
    going_on.cancelled.set()
    thread.join(PATIENCE_S)
    (outcome,) = outcomes
    assert "asked to end" in outcome.output


def test_what_is_no_wheel_is_refused(runtime: Runtime) -> None:
    with pytest.raises(AssertionError, match="greeter"):
        runtime(task(b"no wheel", SEES, CLASSIC))
