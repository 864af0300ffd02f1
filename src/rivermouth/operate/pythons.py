"""The Python of a run, and its packages: what rivermouth's own metadata asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from rivermouth.local.requirements import Requirement, declared, python
from rivermouth.operate.check import Check

EXTRA = "local"


def check_installed() -> Iterator[Check]:
    """This Python, which Spark's workers have too, and each package that a run here needs."""
    try:
        wanted, packages = python(), declared(EXTRA)
    except PackageNotFoundError:
        found = "rivermouth is not installed: its source was found on the path"
        yield Check("packages", False, found, f"pip install 'rivermouth[{EXTRA}]'")
        return
    yield check_python(wanted)
    yield from check_packages(packages)


def check_python(wanted: Requirement, found: str = sys.version) -> Check:
    """Whether this Python is one that rivermouth supports."""
    number = found.split()[0]
    text = f"{number} at {sys.executable}"
    wrong = wanted.wrong(number)
    return Check("Python", not wrong, f"{text}, {wrong}" if wrong else text, f"Use {wanted}")


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
