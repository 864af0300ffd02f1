"""What ``spark-submit`` needs, in one folder: jars, packages, the jobs, and the settings."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from rivermouth.cluster.pack import environment
from rivermouth.cluster.session import FOLDER, travelling
from rivermouth.local.jars import jars
from rivermouth.local.machine import CAPACITY
from rivermouth.local.scratch import writing
from rivermouth.local.session import DELTA, driver_settings

DEFAULTS = "spark-defaults.conf"
_OF_A_DRIVER = {"spark.local.dir", "spark.sql.warehouse.dir", "spark.ui.enabled"}
"""What is said of a driver that a command starts."""


def packed_for_submit(folder: Path, at: str, scripts: Iterable[Path]) -> list[str]:
    """Fill ``folder``, which is made; the names of its files. ``scripts`` are the jobs.

    ``at`` is the address under which the cluster finds the folder: a path, or a URL. Raises
    SetupError.
    """
    with writing(folder):
        (folder / "jars").mkdir(parents=True, exist_ok=True)
        (folder / "jobs").mkdir(exist_ok=True)
        classpath = [Path(shutil.copy(each, folder / "jars")) for each in jars("spark")]
        archive = environment(folder, driver=True).replace(folder / "environment.tar.gz")
        copied = [Path(shutil.copy(each, folder / "jobs")) for each in scripts]
        there = {each: f"{at}/{each.relative_to(folder)}" for each in (*classpath, archive)}
        settings = submitted([there[each] for each in classpath], there[archive])
        lines = [f"{name} {value}\n" for name, value in sorted(settings.items())]
        (folder / DEFAULTS).write_text("".join(lines), encoding="utf-8")
    files = (*classpath, archive, *copied, folder / DEFAULTS)
    return [each.relative_to(folder).as_posix() for each in files]


def submitted(classpath: Iterable[str], archive: str) -> Mapping[str, str]:
    """The settings of a session whose jars and archive of packages have these addresses."""
    ours = driver_settings(Path("unused"))
    kept = {name: value for name, value in ours.items() if name not in _OF_A_DRIVER}
    return {
        **kept,
        **DELTA,
        **travelling(classpath, archive, {}),
        "spark.driver.defaultJavaOptions": "-Duser.timezone=UTC",
        CAPACITY: "1000",
        "spark.yarn.appMasterEnv.PYTHONPATH": f"./{FOLDER}",  # where the driver runs there, too
    }
