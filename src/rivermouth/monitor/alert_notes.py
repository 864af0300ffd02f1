"""Which alerts went out: small files beside the locks of the tables, so that a restart knows."""

from __future__ import annotations

import json
import re

from rivermouth.config import OFFSETS_TABLE
from rivermouth.monitor.alerting import Alert, from_dict
from rivermouth.storage.lake import Lake


class AlertNotes:
    """The newest alert of each pipeline and condition. Each method raises OSError."""

    def __init__(self, lake: Lake) -> None:
        self._notes = lake.below(OFFSETS_TABLE.schema, "alerts")

    def read(self, pipeline: str, condition: str) -> Alert | None:
        """The note; None where there is none, or none that can be understood."""
        found = self._notes.read(_name(pipeline, condition))
        try:
            return None if found is None else from_dict(json.loads(found))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, alert: Alert) -> None:
        """Replace the note."""
        content = json.dumps(alert.as_dict()).encode()
        self._notes.put(_name(alert.pipeline, alert.condition), content)


def _name(pipeline: str, condition: str) -> str:
    return f"{pipeline}-{re.sub('[^a-z0-9]+', '_', condition)}.json"
