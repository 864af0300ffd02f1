"""Runs of jobs: started, listed, cancelled, asked for their output."""

from __future__ import annotations

from tests.bundle.workspace.executor import Means
from tests.bundle.workspace.jobs import Jobs
from tests.bundle.workspace.messages import Request, Resource, invalid, missing
from tests.bundle.workspace.run import Run

KNOWN = {"job_id", "job_parameters"}  # of run-now; anything else is refused, not overlooked


class Runs:
    """``/api/2.2/jobs/run-now`` and ``runs``. Nothing is started by a schedule or by itself."""

    def __init__(self, jobs: Jobs, means: Means) -> None:
        self.jobs, self._means = jobs, means
        self._runs: dict[int, Run] = {}
        self._ids = 700_000

    def run_now(self, request: Request) -> Resource:
        body = request.json()
        if unknown := set(body) - KNOWN:
            raise invalid(f"this workspace knows nothing of {sorted(unknown)}")
        job = self.jobs.shelf.get(str(body.get("job_id")))
        given = body.get("job_parameters", {})
        defaults = {each["name"]: each["default"] for each in job["settings"].get("parameters", ())}
        if unknown := set(given) - set(defaults):
            raise invalid(f"the job has no parameters {sorted(unknown)}")
        run = Run(self._new_id(), job, {**defaults, **given}, self._new_id)
        ahead = self._active(job["job_id"])
        self._runs[run.run_id] = run
        if _is_continuous(job):  # always one run, and it is the newest
            for other in ahead:
                other.cancel()
        run.start(self._means, after=ahead)  # each job has a queue, and runs once at a time
        return {"run_id": run.run_id, "number_in_job": run.run_id}

    def get(self, request: Request) -> Resource:
        return self._run(request.query.get("run_id")).described()

    def list_runs(self, request: Request) -> Resource:
        runs = list(self._runs.values())
        if job_id := request.query.get("job_id"):
            runs = [run for run in runs if str(run.job["job_id"]) == job_id]
        if request.query.get("active_only") == "true":
            runs = [run for run in runs if run.is_active]
        return {"runs": [run.described() for run in reversed(runs)], "has_more": False}

    def get_output(self, request: Request) -> Resource:
        """Of one task: its run id is not that of the run it belongs to."""
        wanted = request.query.get("run_id")
        for run in self._runs.values():
            for task in run.tasks:
                if str(task["run_id"]) == wanted:
                    return run.output(task)
        raise missing(f"Run {wanted} of a task")

    def cancel(self, request: Request) -> None:
        self._run(request.json().get("run_id")).cancel()

    def cancel_all(self, request: Request) -> None:
        for run in self._active(request.json().get("job_id")):
            run.cancel()

    def started(self) -> list[Run]:
        """Every run there was, the oldest first."""
        return list(self._runs.values())

    def stop(self) -> None:
        """End what is running, at the end of the workspace."""
        for run in self._runs.values():
            run.cancel()
        for run in self._runs.values():
            run.join()

    def _active(self, job_id: object) -> list[Run]:
        return [r for r in self._runs.values() if r.is_active and r.job["job_id"] == job_id]

    def _run(self, run_id: object) -> Run:
        for run in self._runs.values():
            if str(run.run_id) == str(run_id):
                return run
        raise missing(f"Run {run_id}")

    def _new_id(self) -> int:
        self._ids += 1
        return self._ids


def _is_continuous(job: Resource) -> bool:
    return bool(job["settings"].get("continuous", {}).get("pause_status") == "UNPAUSED")
