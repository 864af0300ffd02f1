"""Several jobs at the same moment, and one beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rivermouth.errors import RivermouthError


def at_once(*jobs: Callable[[], object]) -> list[RivermouthError]:
    """Run all jobs on threads that start together; return what they raised."""
    raised: list[RivermouthError] = []
    gate = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> None:
        gate.wait()
        try:
            job()
        except RivermouthError as fault:
            raised.append(fault)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return raised


@contextmanager
def repeating(every_s: float, job: Callable[[], object]) -> Iterator[list[Exception]]:
    """Do a job again and again on a thread, until the block ends or the job raises; what it raised.

    The first time is after ``every_s`` seconds.
    """
    over, raised = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            while not over.wait(every_s):
                job()
        except Exception as fault:
            raised.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        over.set()
        thread.join()
