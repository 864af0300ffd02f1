"""The command ``replay`` before it starts anything: what it is told, and where the tables are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit


def test_where_the_tables_are_in_a_catalog_it_says_what_to_do(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    text = lake_yml.read_text("utf-8").replace("warehouse: ./lake", "warehouse: {catalog: main}")
    lake_yml.write_text(text, encoding="utf-8")
    ended = rivermouth("replay", lake_yml, "orders", "--from", "earliest")
    assert (ended.code, ended.out) == (2, "")
    assert "the tables are in the catalog main, and this command needs them as files" in ended.err
    assert "rivermouth.read" in ended.err
    assert "bundle run" not in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody", "--from", "earliest"], "nobody"),
        (["orders", "--from", "soon"], "--from soon: write"),
        (["orders", "--from", "earliest", "--to", "t:0:x"], "--to t:0:x: write"),
        (["orders", "--from", "earliest", "--into", "x"], "--into x: write SCHEMA.TABLE"),
    ],
)
def test_what_it_cannot_understand_is_refused_at_once(
    rivermouth: Rivermouth, lake_yml: Path, words: list[str], said: str
) -> None:
    ended = rivermouth("replay", lake_yml, *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
