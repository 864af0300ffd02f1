"""One run of a job, which has one task: a thread that hands it to the executor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tests.bundle.workspace.executor import Means, Outcome, Task
from tests.bundle.workspace.files import MOMENT
from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Resource
from tests.waiting import PATIENCE_S

ACTIVE = ("QUEUED", "PENDING", "RUNNING")


class Run:
    """One run. Its thread alone moves the states on; a reader may see them at any moment."""

    def __init__(
        self, run_id: int, job: Resource, parameters: dict[str, str], new_id: Callable[[], int]
    ) -> None:
        self.run_id, self.job, self.parameters = run_id, job, parameters
        self.state: Resource = {"life_cycle_state": "PENDING"}
        self.tasks: list[Resource] = [
            {"task_key": task["task_key"], "run_id": new_id(), "state": {**self.state}}
            for task in job["settings"].get("tasks", ())
        ]
        self._outcomes: dict[int, Outcome] = {}
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_active(self) -> bool:
        return self.state["life_cycle_state"] in ACTIVE

    def start(self, means: Means, after: Sequence[Run] = ()) -> None:
        """Begin, when the runs in ``after`` have ended."""
        if after:
            self.state = {"life_cycle_state": "QUEUED"}
        self._thread = threading.Thread(target=self._work, args=(means, after), daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        self._cancelled.set()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def described(self) -> Resource:
        return {
            "run_id": self.run_id,
            "job_id": self.job["job_id"],
            "run_name": self.job["settings"].get("name"),
            "creator_user_name": USER,
            "start_time": MOMENT,
            "state": self.state,
            "run_page_url": f"/jobs/{self.job['job_id']}/runs/{self.run_id}",
            "job_parameters": [{"name": k, "value": v} for k, v in self.parameters.items()],
            "tasks": [dict(task) for task in self.tasks],
        }

    def output(self, task: Resource) -> Resource:
        outcome = self._outcomes.get(task["run_id"], Outcome(""))
        found: Resource = {"metadata": {**self.described(), **task}, "logs": outcome.output}
        if outcome.exit_code:
            found["error"] = f"SystemExit: {outcome.exit_code}"
        return found

    def _work(self, means: Means, after: Sequence[Run]) -> None:
        while any(run.is_active for run in after) and not self._cancelled.wait(0.02):
            pass
        self.state = {"life_cycle_state": "RUNNING"}
        result, message = "SUCCESS", ""
        for task, settings in zip(self.tasks, self.job["settings"].get("tasks", ()), strict=True):
            task["state"] = {"life_cycle_state": "RUNNING"}
            result = self._result(means, task["run_id"], settings)
            message = f"task {task['task_key']}: {result}"
            task["state"] = _ended(result, message)
        self.state = _ended(result, message)

    def _result(self, means: Means, run_id: int, settings: Resource) -> str:
        if self._cancelled.is_set():
            return "CANCELED"
        try:
            outcome = means.executor(self._task(means, run_id, settings))
        except Exception as error:  # an executor's fault ends the run, not the workspace
            outcome = Outcome(f"the executor failed: {error!r}", exit_code=1)
        self._outcomes[run_id] = outcome
        if self._cancelled.is_set():
            return "CANCELED"
        return "FAILED" if outcome.exit_code else "SUCCESS"

    def _task(self, means: Means, run_id: int, settings: Resource) -> Task:
        values = {f"job.parameters.{name}": value for name, value in self.parameters.items()}
        values |= {"job.id": str(self.job["job_id"]), "job.run_id": str(self.run_id)}
        return Task(
            run_id=run_id,
            settings=settings,
            job=self.job["settings"],
            values=values,
            host=means.host(),
            read_file=means.read_file,
            paths=means.paths,
            schemas=means.schemas,
            cancelled=self._cancelled,
        )


def _ended(result: str, message: str) -> Resource:
    shown = "" if result == "SUCCESS" else message
    return {"life_cycle_state": "TERMINATED", "result_state": result, "state_message": shown}
