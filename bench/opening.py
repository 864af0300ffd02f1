"""What a run costs that cron starts each minute: with nothing new, and with a few records.

    python bench/opening.py [--rounds 5]

Each run is a process of its own, as a person types it. ``nothing_s`` are the seconds of a run of
two pipelines that have read their topics. Then 2,000 records are added, and a run appends a row for
each, or keeps the newest of each of 1,000 keys, in turns: ``cold_ratio`` is the time from the
command to the commit by key divided by that of the append. The last line is JSON, medians over the
rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bids import DDL
from changes import KEYED, change
from measured import say

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic, produce

RECORDS, KEYS = 2_000, 1_000
NAMES = ("append", "by_key")


def configured(broker: Broker, folder: Path) -> Path:
    """The file of two pipelines, each with a topic of its own."""
    pipelines = {
        name: {
            "source": {"topics": [name], "format": "json"},
            "schema": DDL,
            "target": {"table": f"silver.{name}", **(KEYED if name == "by_key" else {})},
        }
        for name in NAMES
    }
    told = {
        "version": 1,
        "kafka": {"bootstrap.servers": broker.bootstrap_servers},
        "warehouse": str(folder / "lake"),
        "pipelines": pipelines,
    }
    file = folder / "rivermouth.yml"
    file.write_text(json.dumps(told), encoding="utf-8")
    return file


def ran(file: Path, *names: str) -> tuple[float, float]:
    """The times at which a run of these pipelines began and ended."""
    command = [sys.executable, "-m", "rivermouth", "run", str(file)]
    command += ["--select", ",".join(names)] if names else []
    environ = {**os.environ, "RIVERMOUTH_SCRATCH": str(file.parent / "scratch"), "NO_COLOR": "1"}
    began = time.time()
    subprocess.run(command, check=True, env=environ, capture_output=True)
    return began, time.time()


def first_commit(file: Path, name: str) -> float:
    """The seconds from the command to the commit of the records that were added."""
    log = file.parent / "lake" / "silver" / name / "_delta_log"
    before = {*log.glob("*.json")}
    began, _ = ran(file, name)
    return min(each.stat().st_mtime for each in {*log.glob("*.json")} - before) - began


def main() -> None:
    """Run the rounds; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    asked, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    nothing, cold = list[float](), {name: list[float]() for name in NAMES}
    with Broker(folder / "kafka") as broker:
        file, servers = configured(broker, folder), broker.bootstrap_servers
        for name in NAMES:
            create_topic(servers, name)
            produce(servers, name, [(None, change(0, 0), 0)])
        ran(file)
        for turn in range(asked.rounds):
            for name in NAMES if turn % 2 else NAMES[::-1]:
                produce(servers, name, [(None, change(n % KEYS, turn), 0) for n in range(RECORDS)])
                cold[name].append(first_commit(file, name))
            began, ended = ran(file)
            nothing.append(ended - began)
            told = ", ".join(f"{name} {cold[name][-1]:.2f} s" for name in NAMES)
            say(f"round {turn}: {told}, nothing {nothing[-1]:.2f} s")
    shutil.rmtree(folder)
    ratio = statistics.median(b / a for a, b in zip(*cold.values(), strict=True))
    found = {"nothing_s": statistics.median(nothing), "cold_ratio": ratio}
    print(json.dumps({name: round(each, 2) for name, each in found.items()}))


if __name__ == "__main__":
    main()
