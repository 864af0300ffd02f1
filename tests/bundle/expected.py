"""What the project's bundle makes in a workspace, in the CLI's words and in numbers."""

from __future__ import annotations

from collections import Counter

from tests.bundle.workspace.messages import Resource
from tests.bundle.workspace.workspace import Workspace

ALL_NEW = "Plan: 14 to add, 0 to change, 0 to delete, 0 unchanged"
ALL_THERE = "Plan: 0 to add, 0 to change, 0 to delete, 14 unchanged"
ALL_MADE = Counter(alerts=1, dashboards=1, jobs=2, schemas=1, scopes=1, volumes=1)


def counted(workspace: Workspace) -> Counter[str]:
    return Counter({kind: len(keys) for kind, keys in workspace.stored().items()})


def job_named(workspace: Workspace, name: str) -> Resource:
    """The one job with that name, whatever a target puts before it."""
    jobs = workspace.rooms.jobs.shelf.all()
    (found,) = (job for job in jobs if job["settings"]["name"].split()[-1] == name)
    return found
