"""References to code, as ``module:name``: resolved when they are used."""

from __future__ import annotations

import pkgutil
from typing import Any

from rivermouth.errors import MissingPackage

Reference = str
"""``module:name``, for example ``rivermouth.formats.json:value``."""


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
