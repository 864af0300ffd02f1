"""References to code, as ``module:name``: resolved when they are used."""

from __future__ import annotations

import pkgutil
from typing import Any

Reference = str
"""``module:name``, for example ``rivermouth.formats.json.decoder:decoder``."""


def resolve(reference: Reference) -> Any:
    """The object that a reference names. Raises ImportError or AttributeError."""
    return pkgutil.resolve_name(reference)
