"""The file that the local broker reads."""

from __future__ import annotations

import pytest

from rivermouth.local.broker import properties_text

pytestmark = pytest.mark.unit


def test_a_path_with_any_letters_is_what_java_reads() -> None:
    text = properties_text({"node.id": "1", "log.dirs": "/größe/😀\\x"})
    assert text == "node.id=1\nlog.dirs=/gr\\u00f6\\u00dfe/\\ud83d\\ude00\\u005cx\n"
