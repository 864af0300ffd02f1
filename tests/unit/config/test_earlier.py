"""Configuration files of an earlier version mean what they meant there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config

Loads = Callable[..., Config]

TABLE = (Path(__file__).parent / "earlier.txt").read_text(encoding="utf-8")
LATER = {
    "mirror_group",
    "columns",
    "on_missing_time",
    "min_offsets_per_trigger",
    "max_trigger_delay",
    "max_rate_per_partition",
    "min_partitions",
    "max_records_per_partition",
    "metrics",
    "kafka",
    "foreach_partition",
    "delivery",
    "commit",
    "message_key",
    "topic_column",
    "partition_column",
    "forward_headers",
    "header_columns",
    "timestamps",
    "lenient",
    "metadata",
    "explode",
}
"""Settings of a section that came after the files here were written."""
CASES = re.findall(r"^### (.+?)\n(.*?)^=>\n(.*?)(?=\n###|\Z)", TABLE, re.DOTALL | re.MULTILINE)
ENVIRON = {"KAFKA_USER": "u", "KAFKA_PASSWORD": "hunter2", "SCHEMA": "tested", "MAX_OFFSETS": ""}


def _values(config: Config) -> dict[str, Any]:
    """What the file says, by setting of the file or of a pipeline, as JSON values."""
    found: dict[str, Any] = config.model_dump(mode="json")
    for name, settings in found.pop("pipelines").items():
        found |= {f"{name}.{setting}": value for setting, value in settings.items()}
    return found


def _known_then(then: Any, now: Any) -> Any:
    """Without the settings that came later, which have their defaults; topics as a list."""
    if not isinstance(then, dict) or not isinstance(now, dict):
        return now
    known = {name: value for name, value in now.items() if name in then or name not in LATER}
    if "topics" in known:
        assert (known["topics"]["pattern"], known["topics"]["assigned"]) == ("", {})
        known["topics"] = known["topics"]["names"]
    return known


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_file_of_an_earlier_version_loads_with_the_same_values(
    text: str, expected: str, loads: Loads, tmp_path: Path
) -> None:
    config = loads(text, ENVIRON)
    found = _values(config)
    lines = [line.partition(": ") for line in expected.splitlines()]
    assert len(lines) > 8
    for setting, _, written in lines:
        name, _, field = setting.partition(".")
        if field == "identity":  # it is recorded in the ledger: byte for byte
            assert json.dumps(config.pipelines[name].identity) == written
        else:
            values = json.loads(written.replace("FOLDER", str(tmp_path)))
            assert _known_then(values, found[setting]) == values, setting


def test_there_are_files_of_every_kind() -> None:
    assert len(CASES) == 13
