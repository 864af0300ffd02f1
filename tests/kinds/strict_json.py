"""The format ``json`` as it is from version 2 on, with the reader of version 1 for earlier rows."""

from __future__ import annotations

from dataclasses import replace

from rivermouth.registry.formats import FORMATS, KeyForm

READER = "rivermouth.verify.formats.strict_json.reader:reader"
FIRST = "rivermouth.verify.formats.from_json.reader:reader"
KEYS = KeyForm(
    name="json",
    decoder="rivermouth.formats.json_in_arrow:key",
    reader=READER,
    version=2,
    earlier={1: FIRST},
)
STRICT_JSON = replace(
    FORMATS.by_name["json"],
    decoder="rivermouth.formats.json_in_arrow:value",
    reader=READER,
    key=KEYS,
    version=2,
    earlier={1: FIRST},
    settings=frozenset({"timestamps", "lenient"}),
)
