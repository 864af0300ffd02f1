"""The Pythons of a run, and their packages: what rivermouth's own metadata asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from rivermouth.local.requirements import Requirement, declared, python
from rivermouth.operate.check import Check

EXTRA = "local"
_VARIABLE = "PYSPARK_PYTHON"
_TOLD = "import sys; print('%d.%d' % sys.version_info[:2])"


def check_pythons() -> Iterator[Check]:
    """This Python, that of Spark's workers, and each package that a run on this machine needs."""
    try:
        wanted, packages = python(), declared(EXTRA)
    except PackageNotFoundError:
        found = "rivermouth is not installed: its source was found on the path"
        yield Check("packages", False, found, f"pip install 'rivermouth[{EXTRA}]'")
        return
    yield check_python(wanted)
    yield check_workers(os.environ)
    yield from check_packages(packages)


def check_python(wanted: Requirement, found: str = sys.version) -> Check:
    """Whether this Python is one that rivermouth supports."""
    number = found.split()[0]
    text = f"{number} at {sys.executable}"
    wrong = wanted.wrong(number)
    return Check("Python", not wrong, f"{text}, {wrong}" if wrong else text, f"Use {wanted}")


def check_workers(environ: Mapping[str, str]) -> Check:
    """Whether Spark's Python workers will have the driver's Python.

    A session of the commands takes the driver's. One that somebody makes takes what this variable
    names.
    """
    named, name = environ.get(_VARIABLE, ""), "workers"
    own = ".".join(map(str, sys.version_info[:2]))
    if not named:
        return Check(name, True, f"Python {own}, that of the driver")
    fix = f"unset {_VARIABLE}, or: export {_VARIABLE}={sys.executable}"
    try:
        done = subprocess.run([named, "-c", _TOLD], capture_output=True, text=True, check=False)
    except OSError as error:
        return Check(name, False, f"{_VARIABLE}={named}: {error.strerror}", fix)
    told = done.stdout.strip()
    if done.returncode or not told:
        return Check(name, False, f"{_VARIABLE}={named}: it does not start", fix)
    text = f"{_VARIABLE}={named}: Python {told}"
    return Check(name, told == own, text if told == own else f"{text}, the driver has {own}", fix)


def check_packages(
    wanted: Sequence[Requirement], version_of: Callable[[str], str] = version
) -> Iterator[Check]:
    """One check of all packages if they are as declared; else one of each that is not."""
    found, wrong = list[str](), list[Check]()
    for each in wanted:
        fix = f"pip install '{each}'"
        try:
            number = version_of(each.package)
        except PackageNotFoundError:
            wrong.append(Check(each.package, False, f"not installed; needed is {each}", fix))
            continue
        found.append(f"{each.package} {number}")
        if each.wrong(number):
            text = f"{number} is {each.wrong(number)}; needed is {each}"
            wrong.append(Check(each.package, False, text, fix))
    yield from wrong or [Check("packages", True, ", ".join(found))]
