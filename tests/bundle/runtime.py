"""Databricks compute on this machine: runs what was uploaded, as it was uploaded.

A wheel is installed in an environment of its own, which sees the packages of the tests as a
runtime brings its packages; the workspace's files lie under a folder, to which the paths of a
command line are turned; tables are known by name, from one run to the next. A run on a cluster has
a JVM of its own; serverless runs share a server of Spark Connect, as theirs do.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping
from pathlib import Path

from rivermouth.local.jars import jars
from rivermouth.local.java import archive_file, find_java
from rivermouth.local.session import BRIEF, DELTA
from tests.bundle.workspace.executor import Outcome, Task
from tests.connect.server import ConnectServer

LAUNCHER = Path(__file__).with_name("launcher.py")
CATALOG = "spark_catalog"  # the one in which Spark itself keeps tables by name
SECONDS_TO_END = 60  # between the request to end and the end by force
_PLACE = re.compile(r"(^|=)(?=/(?:Workspace|Volumes)/)")


class Runtime:
    """An executor for ``spark_python_task``. All that it makes lies below ``folder``.

    Its metastore lets one JVM in at a time: a run on a cluster ends the server of serverless runs,
    and the next of those starts another. No test has runs of both kinds at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: ConnectServer | None = None
        self._starting = threading.Lock()
        self._numbers = itertools.count(1)  # run ids begin anew in another workspace
        for name in ("conf", "home", "logs", "scratch"):
            (folder / name).mkdir(parents=True)
        (folder / "conf" / "spark-defaults.conf").write_text(_lines(_of_a_cluster(folder), " "))
        (folder / "conf" / "log4j2.properties").write_text(_lines(_logging(folder), " = "))

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_server()

    @property
    def warehouse(self) -> Path:
        """Where the tables lie: ``schema.table`` in ``schema.db/table``."""
        return self._folder / "warehouse"

    def __call__(self, task: Task) -> Outcome:
        """Run the task's script to its end, or until the run is cancelled."""
        asked = task.settings["spark_python_task"]
        python = self._python(task)
        self._lay_out(task)
        schemas = [each for each in task.schemas() if each.startswith(f"{CATALOG}.")]
        words = (str(self._folder / "logs" / "jvm.txt"), ",".join(schemas), asked["python_file"])
        arguments = [self._here(each) for each in (*words, *task.arguments)]
        log = self._folder / "logs" / f"run-{next(self._numbers)}.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(python), "-I", str(LAUNCHER), *arguments],
                cwd=self._folder / "home",
                env=self._environ(task, python),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            code = _ended(process, task)
        return Outcome(log.read_text(encoding="utf-8", errors="replace"), code)

    def _server_url(self) -> str:
        """Where serverless runs find Spark; the first starts it."""
        with self._starting:
            if self._server is None:
                server = ConnectServer(self._folder / "connect", _of_each(self._folder))
                self._server = server.__enter__()
            return self._server.url

    def _stop_server(self) -> None:
        with self._starting:
            server, self._server = self._server, None
            if server is not None:
                server.__exit__(None, None, None)

    def _here(self, argument: str) -> str:
        """A path of the workspace or of a volume, also behind ``NAME=``, as the path here."""
        return _PLACE.sub(lambda found: f"{found[1]}{self._folder}", argument)

    def _lay_out(self, task: Task) -> None:
        """The workspace's files as they are now; what a run left in a volume stays."""
        shutil.rmtree(self._folder / "Workspace", ignore_errors=True)
        for path in task.paths():
            file = Path(self._here(path))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(task.read_file(path))

    def _python(self, task: Task) -> Path:
        """The Python of an environment with the task's wheel, made when it is first needed."""
        (wheel,) = task.libraries
        content = task.read_file(wheel)
        environment = self._folder / "environments" / hashlib.sha256(content).hexdigest()[:16]
        python = environment / "bin" / "python"
        if not python.exists():
            file = self._folder / "wheels" / Path(wheel).name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
            install(file, environment, python)
        return python

    def _environ(self, task: Task, python: Path) -> dict[str, str]:
        return {
            "PATH": f"{python.parent}{os.pathsep}{os.defpath}",
            "HOME": str(self._folder / "home"),
            "LANG": "C.UTF-8",
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_PYTHON": str(python),
            "SPARK_CONF_DIR": str(self._folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "RIVERMOUTH_SCRATCH": str(self._folder / "scratch"),
            "RIVERMOUTH_VOLUMES": str(self._folder / "Volumes"),
            "DATABRICKS_HOST": task.host,
            "DATABRICKS_TOKEN": "any",
            "DATABRICKS_RUNTIME_VERSION": _version(task),
            **self._way_to_spark(task),
        }

    def _way_to_spark(self, task: Task) -> dict[str, str]:
        if "environment_key" in task.settings:
            return {"IS_SERVERLESS": "TRUE", "SPARK_REMOTE": self._server_url()}
        self._stop_server()
        return {}


def _version(task: Task) -> str:
    """What a runtime calls itself."""
    for environment in task.job.get("environments", ()):
        if environment["environment_key"] == task.settings.get("environment_key"):
            return f"client.{environment['spec']['environment_version']}"
    for cluster in task.job.get("job_clusters", ()):
        if cluster["job_cluster_key"] == task.settings.get("job_cluster_key"):
            version = str(cluster["new_cluster"]["spark_version"]).partition("-")[0]
            return version.replace(".x", ".2")
    raise ValueError(f"the task {task.key} has no compute")


def _ended(process: subprocess.Popen[bytes], task: Task) -> int:
    while process.poll() is None:
        if task.cancelled.wait(0.1):
            process.terminate()
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
    return process.wait()


def install(wheel: Path, environment: Path, python: Path) -> None:
    """Make the environment; raises AssertionError where the wheel would not be what is used."""
    _must(sys.executable, "-m", "venv", "--without-pip", str(environment))
    target = _must(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    here = sysconfig.get_path("purelib")
    Path(target, "runtime.pth").write_text(f"{here}\n", encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python))
    _must(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    package = wheel.name.partition("-")[0]
    used = _must(str(python), "-I", "-c", f"import {package}; print({package}.__file__)")
    assert Path(used).is_relative_to(environment), f"{used} is used, not what was uploaded"


def _must(*command: str) -> str:
    done = subprocess.run(command, env=_PLAIN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


_PLAIN = {"PATH": os.defpath}


def _of_a_cluster(folder: Path) -> dict[str, str]:
    """The settings of a small session with a JVM of its own."""
    java, classpath = find_java(), jars("spark")
    options = (
        f"-Duser.timezone=UTC {BRIEF} "
        f"-Dderby.stream.error.file={folder}/logs/derby.txt "
        f"-XX:SharedArchiveFile={archive_file(java, classpath)} -Xshare:auto -Xlog:disable"
    )
    return {
        **DELTA,
        **_of_each(folder),
        "spark.master": "local[2]",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, classpath)),
        "spark.driver.extraJavaOptions": options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": f"{folder}/scratch",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def _of_each(folder: Path) -> dict[str, str]:
    """The settings by which tables are known by name, whichever JVM made them."""
    return {
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        ),
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
    }


def _logging(folder: Path) -> dict[str, str]:
    return {
        "rootLogger.level": "error",
        "rootLogger.appenderRef.file.ref": "file",
        "appender.file.type": "File",
        "appender.file.name": "file",
        "appender.file.fileName": f"{folder}/logs/spark.txt",
        "appender.file.layout.type": "PatternLayout",
        "appender.file.layout.pattern": "%d %p %c: %m%n%ex",
    }


def _lines(settings: Mapping[str, str], between: str) -> str:
    return "".join(f"{name}{between}{value}\n" for name, value in settings.items())
