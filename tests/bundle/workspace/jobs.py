"""Jobs: their settings, with the defaults that the real service adds."""

from __future__ import annotations

from tests.bundle.workspace.files import MOMENT
from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Request, Resource, invalid
from tests.bundle.workspace.shelf import Shelf

# Both are put under what was sent: a reader who forgets them would see drift.
JOB_DEFAULTS: Resource = {
    "email_notifications": {},
    "webhook_notifications": {},
    "timeout_seconds": 0,
    "max_concurrent_runs": 1,
    "format": "MULTI_TASK",
}
TASK_DEFAULTS: Resource = {
    "email_notifications": {},
    "webhook_notifications": {},
    "timeout_seconds": 0,
    "run_if": "ALL_SUCCESS",
}


class Jobs:
    """``/api/2.2/jobs``, all but the runs."""

    def __init__(self) -> None:
        self.shelf = Shelf("Job", numbers_from=500_001)

    def create(self, request: Request) -> Resource:
        job_id = self.shelf.number()
        self._keep(job_id, request.json())
        return {"job_id": job_id}

    def get(self, request: Request) -> Resource:
        return self.shelf.get(_id(request.query.get("job_id")))

    def delete(self, request: Request) -> None:
        self.shelf.remove(_id(request.json().get("job_id")))

    def _keep(self, job_id: int, settings: Resource) -> None:
        if len(settings.get("tasks", ())) > 1:
            raise invalid("a job of this workspace has one task")
        tasks = [{**TASK_DEFAULTS, **task} for task in settings.get("tasks", ())]
        run_as = settings.get("run_as", {})
        job = {
            "job_id": job_id,
            "creator_user_name": USER,
            "run_as_user_name": next(iter(run_as.values()), USER),
            "created_time": MOMENT,
            "settings": {**JOB_DEFAULTS, **settings, "tasks": tasks},
        }
        self.shelf.put(str(job_id), job)


def _id(value: object) -> str:
    if value is None:
        raise invalid("job_id is missing")
    return str(value)
