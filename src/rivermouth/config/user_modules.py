"""Modules beside a configuration file: the functions that it names may be in its folder.

Python looks there for what it finds nowhere else. In one process a name is one module: so where the
folders of two configurations have a module of the same name, the second one is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rivermouth.config.logins import PROVIDER
from rivermouth.config.problems import Fault, KeyPath, Kind
from rivermouth.config.registry import Reference

if TYPE_CHECKING:
    from rivermouth.config.models import Config


_TAKEN: dict[str, None] = {}
"""The folders from which functions of configurations are imported."""


def functions(config: Config) -> Iterator[tuple[KeyPath, Kind, Reference]]:
    """Each function that a configuration names, after the setting that names it."""
    for name, pipeline in config.pipelines.items():
        path: KeyPath = ("pipelines", name)
        if pipeline.transform:
            yield (*path, "transform"), Kind.TRANSFORM, pipeline.transform
        if pipeline.target.foreach_partition:
            sink = (*path, "target", "foreach_partition")
            yield sink, Kind.SINK, pipeline.target.foreach_partition
    provider = config.kafka.options.get(PROVIDER)
    if isinstance(provider, str):
        yield ("kafka", "options", PROVIDER), Kind.LOGIN, provider


def look_beside(config: Config) -> Iterator[tuple[KeyPath, Fault]]:
    """Put the folder of the file on the import path if a function is found there alone.

    What is installed goes before what is in the folder. Yields a fault for each function whose
    module is that of another configuration in this process.
    """
    folder = str(config.path.parent)
    for path, kind, reference in functions(config):
        module = reference.partition(":")[0].partition(".")[0]
        here = PathFinder.find_spec(module, [folder])
        if here is None:
            continue
        elsewhere = _places_now(module) - _places(here)
        if not elsewhere:
            sys.path += [] if folder in sys.path else [folder]
            _TAKEN[folder] = None
        elif others := elsewhere & {*map(os.path.realpath, _TAKEN)}:
            yield path, _taken(kind, others.pop())


def taken_from(config: Config) -> tuple[str, ...]:
    """The folder of the file, if functions are imported from it: Spark's workers need it, too."""
    return tuple({*_TAKEN} & {str(config.path.parent)})


def found_in(folder: str) -> Iterator[str]:
    """The modules and packages that Python imports from such a folder: what it finds nowhere else.

    Also folders without code, since they may have some later.
    """
    for name in sorted({each.partition(".")[0] for each in os.listdir(folder)}):
        known = _known(name) if name.isidentifier() else None
        if known is not None and _places(known) == {os.path.realpath(folder)}:
            yield name


def _places_now(module: str) -> set[str]:
    """The folders from which Python takes a module, as long as no folder is added."""
    known = _known(module)
    # A folder without code may have any name, and what has code goes before it.
    return _places(known) if known is not None and known.origin is not None else set()


def _known(module: str) -> ModuleSpec | None:
    """Where Python finds a module; None: nowhere, or somebody made it without a file."""
    try:
        return find_spec(module)
    except ValueError:
        return None


def _places(found: ModuleSpec) -> set[str]:
    """The folders that hold a module or package."""
    files = [found.origin] if found.has_location and found.origin else []
    held = found.submodule_search_locations or files
    return {os.path.realpath(os.path.dirname(each)) for each in held}


def _taken(kind: Kind, other: str) -> Fault:
    message = f"{{path}} is in a module of which the configuration in {other} uses another one"
    fix = "give one of the modules another name, or run each configuration in a process of its own"
    return Fault(kind, message, fix=fix)
