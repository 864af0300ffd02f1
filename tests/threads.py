"""Several jobs at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

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
