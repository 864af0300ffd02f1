"""``validate`` says which ``start`` has no effect any more, by the ledgers of a real lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.protocol.starts import OVER
from tests.archives import unpack
from tests.unit.cli.conftest import CONFIG, Rivermouth

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
LAKE = ROOT / "fixtures" / "f7556ba" / "lake.tar.xz"
"""Its pipelines ``bids`` and ``orders`` have read their topics."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a warehouse that runs have written."""
    folder = tmp_path_factory.mktemp("validating")
    unpack(LAKE, folder, below="lake/")
    return folder


def validated(rivermouth: Rivermouth, lake: Path, *changes: tuple[str, str]) -> list[str]:
    """What ``validate`` says of the configuration with these changes, without its first line."""
    text = CONFIG
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = lake / "lake.yml"
    file.write_text(text, encoding="utf-8")
    ended = rivermouth("validate", file)
    assert (ended.code, ended.err) == (0, "")
    first, *others, last = ended.out.splitlines()
    assert first.startswith(f"OK: {file} describes 2 pipeline(s)")
    assert last == f"Next: rivermouth doctor {file}"
    return others


BIDS, ORDERS = "topics: [bids]", "topics: [orders]"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([], []),
        ([(BIDS, f"{BIDS}, start: latest")], [f"bids: {OVER}"]),
        (
            [
                (BIDS, f"{BIDS}, start: {{bids: {{0: 5, 1: latest}}}}"),
                (ORDERS, f"{ORDERS}, startingOffsets: earliest"),
            ],
            [f"bids: {OVER}", f"orders: {OVER}"],
        ),
        ([(BIDS, "topics: [bids, more], start: latest")], []),
    ],
    ids=["no start", "one", "two", "a topic that no run has read"],
)
def test_a_start_that_the_ledger_has_passed_is_told(
    rivermouth: Rivermouth, lake: Path, changes: list[tuple[str, str]], said: list[str]
) -> None:
    assert validated(rivermouth, lake, *changes) == said


def test_a_start_is_told_only_once_there_is_a_ledger(
    rivermouth: Rivermouth, tmp_path: Path
) -> None:
    assert validated(rivermouth, tmp_path, (BIDS, f"{BIDS}, start: latest")) == []
