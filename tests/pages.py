"""The pages of the documentation as tests read them, and what they show."""

from __future__ import annotations

import re

from tests.processes import ROOT


def page(name: str) -> str:
    """The text of ``docs/NAME.md``."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands under a heading, which begins with its marks, up to the next one of its level."""
    level = heading.partition(" ")[0]
    return text.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]


def snippets(text: str, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
