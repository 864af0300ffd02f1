"""Faults as data: which requests fail, from which time on, how often, and with what answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.bundle.workspace.messages import Refused, Request


@dataclass(frozen=True)
class Fault:
    """The requests ``method`` ``path`` (a pattern for the whole path), counted from 1: those from
    the ``first`` on are refused, ``times`` of them. ``done`` says whether the work is done all
    the same: the answer that got lost."""

    method: str
    path: str
    status: int
    code: str
    message: str = "injected"
    first: int = 1
    times: int = 1_000_000
    done: bool = False

    def fits(self, request: Request) -> bool:
        return request.method == self.method and bool(re.fullmatch(self.path, request.path))


UPLOAD = "/api/2.0/workspace-files/import-file"
SCHEMAS_PATH, JOBS_PATH = "/api/2.1/unity-catalog/schemas", "/api/2.2/jobs/create"
"""Where a deploy writes files, and makes schemas and jobs."""


def once(
    method: str,
    path: str,
    status: int = 500,
    code: str = "INTERNAL_ERROR",
    *,
    done: bool = False,
) -> Fault:
    """The first such request is refused, or ``done`` and never answered well."""
    return Fault(method, path, status, code, times=1, done=done)


class Faults:
    """Counts the requests that fit each fault and says which one is to fail now."""

    def __init__(self) -> None:
        self._faults: tuple[Fault, ...] = ()
        self._seen: Counter[Fault] = Counter()

    def set(self, faults: Iterable[Fault]) -> None:
        """Only these from now on, counted from the next request."""
        self._faults = tuple(faults)
        self._seen.clear()

    def of(self, request: Request) -> Fault | None:
        found = None
        for fault in self._faults:
            if fault.fits(request):
                self._seen[fault] += 1
                if fault.first <= self._seen[fault] < fault.first + fault.times:
                    found = found or fault
        return found


def refusal(fault: Fault) -> Refused:
    return Refused(fault.status, fault.code, fault.message)
