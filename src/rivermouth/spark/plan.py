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
    return nodes(_analyzed(rows))


def nodes(text: str) -> Sequence[str]:
    """The nodes of a plan's text, a line each; a line break in a literal ends none of them."""
    found: list[str] = []
    for line in text.split("\n"):
        inside = found and line[:1] not in (" ", ":", "+", "-")
        if inside:
            found[-1] += line
        elif line.strip():
            found.append(_BRANCHES.sub("", line))
    return found


def _analyzed(rows: Any) -> str:
    jvm = getattr(rows, "_jdf", None)
    if jvm is not None:
        return str(jvm.queryExecution().analyzed().toString())
    found = _ANALYZED.search(rows._explain_string(mode="extended"))
    return found[1] if found else ""
