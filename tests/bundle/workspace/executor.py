"""What carries out a task: a callable that the test gives to the workspace."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.bundle.workspace.messages import Resource

ReadFile = Callable[[str], bytes]  # a workspace or volume path to what lies there
Names = Callable[[], list[str]]


@dataclass(frozen=True)
class Task:
    """One task of a run. ``settings`` are the task's, ``job`` the whole job's, as uploaded."""

    run_id: int
    settings: Resource
    job: Resource
    values: Mapping[str, str]  # what stands for {{job.parameters.x}} and the like
    host: str  # where the workspace answers: DATABRICKS_HOST for what the task starts
    read_file: ReadFile
    paths: Names  # of every file of the workspace and of its volumes
    schemas: Names  # catalog.schema
    cancelled: threading.Event  # set when the run is to end

    @property
    def key(self) -> str:
        return str(self.settings["task_key"])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line of the script, its references resolved."""
        listed = self.settings["spark_python_task"].get("parameters", ())
        return tuple(resolve(argument, self.values) for argument in listed)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The wheels and requirements it needs: of its environment, or its own libraries."""
        key = self.settings.get("environment_key")
        for environment in self.job.get("environments", ()):
            if environment["environment_key"] == key:
                return tuple(environment["spec"].get("dependencies", ()))
        own = self.settings.get("libraries", ())
        return tuple(library["whl"] for library in own if "whl" in library)


@dataclass(frozen=True)
class Outcome:
    """How it ended: everything it printed, and 0 for success."""

    output: str
    exit_code: int = 0


Executor = Callable[[Task], Outcome]


@dataclass(frozen=True)
class Means:
    """What every run of a workspace needs. ``host`` is asked late: the port is found late."""

    executor: Executor
    read_file: ReadFile
    paths: Names
    schemas: Names
    host: Callable[[], str]


def resolve(text: str, values: Mapping[str, str]) -> str:
    """Put ``{{name}}`` right; a name that nobody knows stays, as on the platform."""
    return re.sub(
        r"\{\{\s*([\w.]+)\s*\}\}", lambda found: values.get(found.group(1), found.group()), text
    )


def refuses(task: Task) -> Outcome:
    """The executor of a workspace that was given none."""
    return Outcome(f"nothing here can run the task {task.key}", exit_code=1)
