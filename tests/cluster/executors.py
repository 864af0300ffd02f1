"""The processes of a cluster on this machine, as a nemesis sees them: found, killed, retired."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from rivermouth.local.standalone import LocalCluster
from tests.processes import listed


def executors(cluster: LocalCluster) -> list[int]:
    """The executors that live: the children of the workers."""
    return [pid for worker in cluster.workers for pid in children(worker.pid)]


def in_python(cluster: LocalCluster) -> list[int]:
    """The processes of Python that carry out tasks: below each executor one, which has forked
    others.
    """
    daemons = [each for pid in executors(cluster) for each in children(pid)]
    return [each for pid in daemons for each in children(pid)]


def children(pid: int) -> list[int]:
    """The processes that a process has started; none where there is no such process."""
    return [int(each) for each, parent in listed("ppid") if pid and int(parent) == pid]


def strike(pids: list[int], number: int = signal.SIGKILL) -> int:
    """Send a signal to those of them that live; how many there were."""
    struck = 0
    for each in pids:
        with suppress(ProcessLookupError):
            os.kill(each, number)
            struck += 1
    return struck


def one_executor(cluster: LocalCluster) -> int:
    """Kill one executor; how many there were, as for all that follow."""
    return strike(executors(cluster)[:1])


def all_executors(cluster: LocalCluster) -> int:
    """Kill all executors."""
    return strike(executors(cluster))


def a_worker(cluster: LocalCluster) -> int:
    """Kill a worker, with which its executors end, and start another one in its place."""
    struck = strike([cluster.workers[0].pid])
    time.sleep(1)
    cluster.start_worker(0)
    return struck


def its_python(cluster: LocalCluster) -> int:
    """Kill one process of Python that carries out tasks."""
    return strike(in_python(cluster)[:1])


def retired(cluster: LocalCluster) -> int:
    """Decommission one executor: it ends what it is at, and gets nothing more."""
    return strike(executors(cluster)[:1], signal.SIGPWR)
