"""What one check of ``doctor`` found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what it is, whether it will do, what was found, what to do."""

    name: str
    ok: bool
    found: str
    fix: str = ""
