"""Whatever the file holds, the loader returns a configuration or raises ``ConfigError``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rivermouth.config import Config, load
from rivermouth.errors import ConfigError

LAKE = """\
version: 1
kafka: {bootstrap.servers: "k:9092", sasl.password: "${env:SECRET}"}
warehouse: lake
pipelines:
  p:
    source: {topics: [t], format: json, start: {t: {0: 5}}}
    schema: id BIGINT, at TIMESTAMP
    target: {table: s.t, mode: upsert, keys: [id]}
"""

PIECES = st.sampled_from(
    [
        *"{}[]:,-?#|>&*!%'\"\\`@~\n\t ",
        *("  ", "&a ", "*a", "<<: *a\n", "!x ", "!!int ", "!!set ", "---\n", "%YAML 9.9\n---\n"),
        *(
            "${",
            "${env:SECRET}",
            "${secret:hunter/2}",
            "${foo:x}",
            "$${",
            "null",
            "true",
            "1e999",
            "0x",
            ".nan",
            "- ",
        ),
        *("\x01", "\x85", "\u2028", "\ufeff", "\\UFFFFFFFF", "9" * 5000, "ARRAY<" * 60, "STRUCT<"),
        *("2020-01-01", "[" * 300, "version: ", "pipelines: ", "kafka: ", "start: ", "schema: "),
    ]
)
EDITS = st.lists(
    st.tuples(st.integers(0, len(LAKE)), st.integers(0, 20), PIECES | st.text(max_size=8)),
    max_size=6,
)


def _outcome(content: bytes) -> Config | ConfigError:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lake.yml"
        file.write_bytes(content)
        try:
            return load(file, {"SECRET": "hunter 2"})
        except ConfigError as error:
            return error


def _check(outcome: Config | ConfigError) -> None:
    if isinstance(outcome, ConfigError):
        assert outcome.problems
        assert all(len(line.splitlines()) == 1 for line in outcome.problems)
        assert "hunter" not in str(outcome)


@settings(max_examples=150)
@given(EDITS)
def test_an_edited_file_never_raises_anything_else(edits: list[tuple[int, int, str]]) -> None:
    text = LAKE
    for at, length, piece in edits:
        text = text[:at] + piece + text[at + length :]
    _check(_outcome(text.encode("utf-8", "surrogatepass")))


@settings(max_examples=100)
@given(st.lists(PIECES | st.text(max_size=5), max_size=15).map("".join))
def test_any_text_never_raises_anything_else(text: str) -> None:
    _check(_outcome(text.encode("utf-8", "surrogatepass")))


@settings(max_examples=50)
@given(st.binary(max_size=60))
def test_any_bytes_never_raise_anything_else(content: bytes) -> None:
    _check(_outcome(content))
