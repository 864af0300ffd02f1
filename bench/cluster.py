"""One worker and two, of one core each, on a real cluster over a real object store.

    python -m bench.cluster [--records 400000] [--batches 9] [--rounds 3] [--share 0.5]

Each drain is a driver of its own, whose executors are on one worker or both, in turns. The first
four batches warm them and are left out. Broker, store, driver and executors share the cores
of this machine, so what two workers gain has a limit: the same drain is measured with the tasks in
the driver's JVM (``alone``), by as many cores. With ``--share`` each worker gets only so much of a
core, by a control group: then something is left for the others. It needs the right to make one.

The last line is JSON: ``rate`` in records a second by workers, and ``alone``; ``ratio`` of two
workers to one; ``share`` of the records that each of two executors read; ``hits``: tasks that ran
where Spark's source wanted them, by its own account; ``connections``: how many sockets to the
broker the executors opened in each batch after these; ``verified`` records.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bids import DDL, bid
from peer import cpu_seconds

from rivermouth import verify
from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.local.s3 import BUCKET, LocalS3
from rivermouth.local.standalone import LocalCluster
from rivermouth.run.report import CommitReport, PipelineReport, Silent
from rivermouth.testing import create_topic, produce
from tests.cluster.lake import environment

PARTITIONS, WARM = 8, 4


class _Heard(Silent):
    """When batches were committed, and which local ports the executors had to the broker then."""

    def __init__(self, port: int) -> None:
        self.commits, self.error, self._port = [time.monotonic()], "", port
        self.sockets: list[frozenset[int]] = []

    def committed(self, report: CommitReport) -> None:
        self.commits.append(time.monotonic())
        self.sockets.append(connections(self._port))

    def finished(self, report: PipelineReport) -> None:
        self.error = str(report.error or "")


def connections(port: int) -> frozenset[int]:
    """The local ports that are connected to a port of this machine, by whomever."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, remote, state = line.split()[:4]
            if int(remote.rsplit(":", 1)[1], 16) == port and state == "01":
                found.add(int(local.rsplit(":", 1)[1], 16))
    return frozenset(found)


def drive(file: Path, scratch: Path, port: int) -> dict[str, Any]:
    """Drain the topic in this process; what was measured."""
    from rivermouth.cluster.session import start_on_cluster
    from rivermouth.local.session import start_session
    from rivermouth.run.run import Run
    from rivermouth.run.starting import platform_with

    config = load(file)
    start = start_on_cluster if config.master else start_session
    session = start(scratch, config.spark)
    heard = _Heard(port)
    run = Run(config, session, scratch, continuous=False, platform=platform_with(session))
    run.pipelines(["bids"], heard, threading.Event())
    if heard.error:
        raise SystemExit(heard.error)
    seconds = [end - begin for begin, end in pairwise(heard.commits)]
    opened = [len(after - before) for before, after in pairwise(heard.sockets)]
    hits, shares = tasks(session) if config.master else (Counter[str](), Counter[str]())
    session.stop()
    return {"seconds": seconds, "opened": opened, "hits": hits, "shares": shares}


def tasks(session: Any) -> tuple[Counter[str], Counter[str]]:
    """The tasks of all stages but the first one, which tries the place, by locality; the bytes that
    each executor's tasks read.
    """
    store, jvm = session.sparkContext._jsc.sc().statusStore(), session._jvm
    none = jvm.java.util.ArrayList()
    no_quantiles = session.sparkContext._gateway.new_array(jvm.double, 0)
    hits, shares = Counter[str](), Counter[str]()
    for stage in _each(store.stageList(none, False, False, no_quantiles, none)):
        if stage.stageId() == 0:
            continue
        for task in _each(store.taskList(stage.stageId(), stage.attemptId(), 10_000)):
            hits[task.taskLocality()] += 1
            shares[task.executorId()] += task.taskMetrics().get().inputMetrics().recordsRead()
    return hits, shares


def _each(found: Any) -> Iterator[Any]:
    for number in range(found.size()):
        yield found.apply(number)


_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000


@contextmanager
def limited(pids: Sequence[int], share: float) -> Iterator[None]:
    """Processes that get so much of a core each, with all that they start; 0: no limit."""
    first = (_GROUPS / "cpu").is_dir()
    made = [(_GROUPS / "cpu" if first else _GROUPS) / f"rivermouth-{pid}" for pid in pids]
    quota = int(share * _PERIOD_US)
    told = ("cpu.cfs_quota_us", str(quota)) if first else ("cpu.max", f"{quota} {_PERIOD_US}")
    for pid, group in zip(pids, made if share else (), strict=False):
        group.mkdir()
        (group / told[0]).write_text(told[1])
        (group / "cgroup.procs").write_text(str(pid))
    try:
        yield
    finally:
        for group in made if share else ():  # empty only once the processes have ended
            for left in (group / "cgroup.procs").read_text().split():
                (group.parent / "cgroup.procs").write_text(left)
            group.rmdir()


def main() -> None:
    """Run it; print the line of JSON."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--records", type=int, default=400_000, help="of a batch")
    asked.add_argument("--batches", type=int, default=9)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--share", type=float, default=0.0, help="of a core, for each worker")
    asked.add_argument("--drive", nargs=3, metavar=("FILE", "SCRATCH", "PORT"))
    given = asked.parse_args()
    if given.drive:
        file, scratch, port = given.drive
        print("measured", json.dumps(drive(Path(file), Path(scratch), int(port))), flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as name:
        print(json.dumps(measured(Path(name), given)))


def measured(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The line of JSON."""
    found: dict[str, list[dict[str, Any]]] = {"1": [], "2": [], "alone": []}
    records = given.records * given.batches
    verified, spent = 0, Counter[str]()
    with (
        Broker(folder / "kafka") as broker,
        LocalS3(folder / "store") as store,
        LocalCluster(2, 1, "3g", environ=environment()) as cluster,
        limited([each.pid for each in cluster.workers], given.share),
    ):
        fill(broker, records)
        servers = {"broker": broker.pid, "store": store.pid}
        for turn in range(given.rounds):
            for kind in (("1", "2", "alone"), ("alone", "2", "1"))[turn % 2]:
                file = configured(folder, broker, store, cluster, given.records, kind, turn)
                before = {each: cpu_seconds(pid) for each, pid in servers.items()}
                found[kind].append(drained(file, folder / f"s{kind}{turn}", broker))
                for each, pid in servers.items():
                    spent[each] += cpu_seconds(pid) - before[each]
                [proof] = verify(load(file)).as_dict()["pipelines"]
                if not proof["ok"] or proof["records"] != records:
                    raise SystemExit(f"not proved: {proof}")
                verified += records
    rates = {
        kind: round(given.records / statistics.median(warm(each))) for kind, each in found.items()
    }
    two = found["2"]
    hits = sum((Counter(each["hits"]) for each in two), Counter[str]())
    shares = [sorted(each["shares"].values()) for each in two]
    return {
        "rate": rates,
        "ratio": round(rates["2"] / rates["1"], 2),
        "of_a_core": given.share or 1.0,
        "share": [round(each[-1] / max(1, sum(each)), 2) for each in shares],
        "hits": hits,
        "connections": [each["opened"][WARM:] for each in two],
        "cpu_of_servers": {each: round(n, 1) for each, n in spent.items()},
        "verified": verified,
    }


def warm(found: list[dict[str, Any]]) -> list[float]:
    """The seconds of the batches that count. The first commit brings the partitions alone."""
    return [each for one in found for each in one["seconds"][1 + WARM :]]


def fill(broker: Broker, records: int) -> None:
    """A topic with so many bids."""
    create_topic(broker.bootstrap_servers, "bids", PARTITIONS)
    dice = random.Random(7)
    values = ((None, bid(n, dice), n % PARTITIONS) for n in range(records))
    produce(broker.bootstrap_servers, "bids", values)


def configured(
    folder: Path,
    broker: Broker,
    store: LocalS3,
    cluster: LocalCluster,
    per_batch: int,
    kind: str,
    turn: int,
) -> Path:
    """A configuration for so many workers, with tables of its own."""
    file = folder / f"{kind}-{turn}.yml"
    spark: Mapping[str, str] = {
        **cluster.settings,
        "spark.executor.memory": "2g",
        "spark.cores.max": kind,
        "spark.pyspark.python": sys.executable,
    }
    pipeline = {
        "source": {"topics": ["bids"], "format": "json", "max_offsets_per_trigger": per_batch},
        "schema": DDL,
        "target": {"table": "bronze.bids"},
    }
    told = {
        "version": 1,
        "kafka": {"bootstrap.servers": broker.bootstrap_servers},
        "warehouse": f"s3://{BUCKET}/{kind}-{turn}",
        "storage": store.options,
        "spark": {} if kind == "alone" else spark,
        "pipelines": {"bids": pipeline},
    }
    file.write_text(json.dumps(told), encoding="utf-8")
    return file


def drained(file: Path, scratch: Path, broker: Broker) -> dict[str, Any]:
    """What a driver of its own measured."""
    port = broker.bootstrap_servers.rsplit(":", 1)[1]
    done = subprocess.run(
        [sys.executable, __file__, "--drive", str(file), str(scratch), port],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
    )
    [line] = [each for each in done.stdout.splitlines() if each.startswith("measured ")]
    found = dict(json.loads(line.removeprefix("measured ")))
    print(
        f"{file.stem}: {[round(each, 2) for each in found['seconds']]}", file=sys.stderr, flush=True
    )
    return found


if __name__ == "__main__":
    main()
