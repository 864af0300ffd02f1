"""The examples of a file in ``docs/configuration.md``."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.config.conftest import LAKE

TEXT = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def _whole(example: str) -> str:
    """A file: an example of the section ``kafka`` alone is put into a small sound one."""
    if not example.startswith("kafka:"):
        return example
    return re.sub(r"^kafka: .*\n", lambda _: example, LAKE, flags=re.MULTILINE)


_EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
FILES = [_whole(each) for each in _EXAMPLES]
