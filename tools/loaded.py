"""Run a small lake, then print what the driver and Spark's Python workers have loaded, as JSON.

    python loaded.py FOLDER

For an environment that has nothing but rivermouth and its extra ``local``: see try_wheel.py.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.local.demo import configure, recreate
from rivermouth.local.demo_records import fill
from rivermouth.local.session import BRIEF, ending, start_session
from rivermouth.run.report import Silent
from rivermouth.run.run import Run

PIPELINES = ("bids", "orders")
# The script, and what a system may add to the start of every Python.
_OF_NOBODY = ("__main__", "__mp_main__", "sitecustomize", "usercustomize")


def files() -> set[str]:
    """The files of all modules that are loaded here, but of the script."""
    found = {name: getattr(each, "__file__", None) for name, each in [*sys.modules.items()]}
    return {file for name, file in found.items() if file and name not in _OF_NOBODY}


def files_in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same in a worker: a function for ``mapInArrow``."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": sorted(files())})


def run(folder: Path) -> tuple[set[str], set[str]]:
    """Run the demo's pipelines on a few records; the files of the driver, and of the workers."""
    recreate(folder)
    with Broker() as broker:
        fill(broker.bootstrap_servers, bids=2_000, changes=1_000, aborted=0)
        file = configure(folder, broker.bootstrap_servers, 2_000, 1_000)
        session = start_session(folder / "scratch", java_options=BRIEF)
        with ending(session):
            run = Run(load(file), session, folder / "scratch", continuous=False)
            for report in run.pipelines(PIPELINES, Silent(), threading.Event()):
                if report.error is not None:
                    raise report.error
            slots = session.sparkContext.defaultParallelism
            asked = session.range(0, slots, 1, slots).mapInArrow(files_in_worker, "file STRING")
            return files(), {row["file"] for row in asked.collect()}


def owners(loaded: set[str]) -> list[str]:
    """The distributions of these files, without Python's own; a file of nobody as it is."""
    own = {
        Path(str(each.locate_file(file))).resolve(): each.metadata["Name"]
        for each in importlib.metadata.distributions()
        for file in each.files or ()
    }
    python = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib")]
    found = set[str]()
    for path in (Path(each).resolve() for each in loaded):
        whose = [own[each] for each in (path, *path.parents) if each in own]  # or in an archive
        if whose or not any(path.is_relative_to(each) for each in python):
            found.add(whose[0] if whose else str(path))
    return sorted(found)


if __name__ == "__main__":
    driver, workers = run(Path(sys.argv[1]))
    print(json.dumps({"driver": owners(driver), "workers": owners(workers)}))
