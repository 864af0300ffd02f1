"""A session whose tasks run on a cluster; the driver is this process.

Jars and packages travel with it: Spark serves them to each executor. Whatever the file says of the
session goes before what is set here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.cluster.pack import environment
from rivermouth.config.options import PYTHON
from rivermouth.local.jars import jars
from rivermouth.local.scratch import cache_folder, scratch_of_process
from rivermouth.local.session import begun, driver_settings

_ARCHIVES, _PATH = "spark.archives", "spark.executorEnv.PYTHONPATH"
FOLDER = "rivermouth-packages"
"""Where the packages are, in the folder in which an executor works."""


def start_on_cluster(scratch: Path, settings: Mapping[str, str]) -> SparkSession:
    """Start a session with the master that ``settings`` name, or return the running one.

    Where they name no Python of the executors, the packages of this environment travel; the first
    time they are packed for some seconds. Raises SetupError.
    """
    own = scratch_of_process(scratch / "sessions", "spark")
    classpath = jars("spark")
    python = settings.get(PYTHON) or os.environ.get("PYSPARK_PYTHON", "")
    packed = None if python else environment(cache_folder() / "environments")
    given = {**driver_settings(own), **settings}
    given |= travelling(map(str, classpath), str(packed or ""), settings)
    return begun(scratch, own, given, classpath, python or "python3")


def travelling(classpath: Iterable[str], packed: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings by which jars, and an archive of packages, get to the executors from where they
    are: paths, or URLs.

    An archive is unpacked in the folder where an executor works; none where it is empty. What
    ``given`` names beside it stays.
    """
    found = {"spark.jars": ",".join(classpath), **_SOCKETS}
    if packed:
        found[_ARCHIVES] = ",".join(filter(None, (f"{packed}#{FOLDER}", given.get(_ARCHIVES))))
        found[_PATH] = os.pathsep.join(filter(None, (f"./{FOLDER}", given.get(_PATH))))
    return found


_SOCKETS = {
    # As on one machine. Where an executor works the path may be too long for a socket.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.unix.domain.socket.dir": "/tmp",
}
