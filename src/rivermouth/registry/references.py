"""References to code, as ``module:name``: resolved when they are used."""

from __future__ import annotations

import pkgutil
import sys
from typing import Any

from rivermouth.errors import MissingPackage, RivermouthError

Reference = str
"""``module:name``, for example ``rivermouth.formats.json:value``."""


def own(reference: Reference) -> Any:
    """The function of the user that a configuration names. Raises MissingPackage."""
    try:
        return pkgutil.resolve_name(reference)
    except RivermouthError:
        raise
    except Exception as fault:  # a module of somebody else's may raise anything
        module = reference.partition(":")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        raise MissingPackage(
            "the function cannot be imported",
            where=reference,
            found=f"{type(fault).__name__}: {fault}" + (f" ({file})" if file else ""),
            remedy="Put its module beside the configuration file, install its package, or name its"
            " folder in PYTHONPATH; then run again",
        ) from fault


def resolve(reference: Reference) -> Any:
    """The object that a reference names. Raises MissingPackage where it cannot be imported."""
    try:
        return pkgutil.resolve_name(reference)
    except (ImportError, AttributeError, ValueError) as fault:
        raise MissingPackage(
            "a registration names what cannot be imported",
            where=reference,
            found=str(fault),
            remedy="Correct the registration, or install the package that its module needs",
        ) from fault
