"""The design page shows an entry: it must be one."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rivermouth.protocol.entry_json import from_json, to_json

DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def test_the_entry_shown_in_the_design_is_an_entry() -> None:
    [shown] = re.findall(r"```json\n(.*?)```", DESIGN.read_text("utf-8"), re.DOTALL)
    entry = from_json(shown)
    assert entry is not None
    assert json.loads(to_json(entry)) == json.loads(shown)
