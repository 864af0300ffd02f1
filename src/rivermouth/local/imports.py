"""A folder for the import path of Spark's workers, who look there before they look elsewhere."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from rivermouth.config import found_in
from rivermouth.local.scratch import ScratchFolder

_STANDS_FOR = """\
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

spec = PathFinder.find_spec(__name__, [{folder!r}])
sys.modules[__name__] = module_from_spec(spec)
if spec.loader:
    spec.loader.exec_module(sys.modules[__name__])
"""


@cache
def standing_for(root: Path, folder: str) -> str:
    """A scratch folder below ``root`` from which just those modules are imported that the driver
    imports from ``folder``.

    It is the same one for as long as the process lives: Spark starts new workers for another path.
    """
    scratch = ScratchFolder(root, "imports")
    place = scratch.__enter__()
    atexit.register(scratch.__exit__, None, None, None)
    for each in found_in(folder):
        (place / f"{each}.py").write_text(_STANDS_FOR.format(folder=folder), encoding="utf-8")
    return str(place)
