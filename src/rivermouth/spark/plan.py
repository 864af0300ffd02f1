"""The plan of a DataFrame, as text: of a session in this process, and through Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BRANCHES = re.compile(r"^[\s:+\-]*")
_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n[^\n]*\n(.*?)\n== Optimized", re.DOTALL)


def analyzed(rows: DataFrame) -> Sequence[str]:
    """The lines of the analyzed plan from the top on, a node each, without the tree's branches.

    Nothing is evaluated. Empty where Spark shows none.
    """
    text = _analyzed(rows)
    return [_BRANCHES.sub("", line) for line in text.splitlines() if line.strip()]


def _analyzed(rows: Any) -> str:
    jvm = getattr(rows, "_jdf", None)
    if jvm is not None:
        return str(jvm.queryExecution().analyzed().toString())
    found = _ANALYZED.search(rows._explain_string(mode="extended"))
    return found[1] if found else ""
