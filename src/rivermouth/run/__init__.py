"""A run: opening pipelines, committing their batches, saying what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rivermouth.run.run import Run

__all__ = ["Run"]


def __getattr__(name: str) -> Any:
    if name != "Run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rivermouth.run.run import Run  # not above: it needs Spark, and reports do not

    return Run
