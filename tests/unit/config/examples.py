"""The examples of a file in ``docs/configuration.md``, and in pages that show whole files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.config.conftest import LAKE

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "configuration.md").read_text(encoding="utf-8")
READING = (DOCS / "reading.md").read_text(encoding="utf-8")
SINKS = (DOCS / "sinks.md").read_text(encoding="utf-8")
RECORDS = (DOCS / "records.md").read_text(encoding="utf-8")
EVENTS = (DOCS / "cdc.md").read_text(encoding="utf-8")
STORES = (DOCS / "stores.md").read_text(encoding="utf-8")
ALERTS = (DOCS / "alerts.md").read_text(encoding="utf-8")


def _whole(example: str) -> str:
    """A file: an example of the section ``kafka`` alone is put into a small sound one."""
    if not example.startswith("kafka:"):
        return example
    return re.sub(r"^kafka: .*\n", lambda _: example, LAKE, flags=re.MULTILINE)


_EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```",
    TEXT + READING + SINKS + RECORDS + EVENTS + STORES + ALERTS,
    re.DOTALL | re.MULTILINE,
)
FILES = [_whole(each) for each in _EXAMPLES]
