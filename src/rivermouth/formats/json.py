"""JSON records and JSON message keys, as ``docs/json.md`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rivermouth.config import Column
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings


def decoder(columns: Sequence[Column], settings: Mapping[str, Any]) -> StrictJson:
    """What decodes values and message keys that are JSON objects."""
    return StrictJson.of(columns, settings_of(settings))


def settings_of(settings: Mapping[str, Any]) -> JsonSettings:
    """The settings of a source, as the ledger names them."""
    times = settings.get("timestamps", {})
    lenient = frozenset(settings.get("lenient", ()))
    cut, empty = times.get("fraction") == "cut", settings.get("on_empty") == "null"
    return JsonSettings(times.get("unit"), cut, lenient, empty)
