"""``validate`` says which ``start`` has no effect any more, by the ledgers of real tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.starts import OVER
from tests.builders import entry_after, span
from tests.unit.cli.conftest import CONFIG, Rivermouth

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a warehouse: ``bids`` and ``orders`` have read their topics."""
    folder = tmp_path_factory.mktemp("validating")
    for pipeline, schema in (("bids", "bronze"), ("orders", "silver")):
        entry = entry_after(None, span(0, 2, topic=pipeline), pipeline=pipeline)
        properties = CommitProperties(
            custom_metadata={"userMetadata": to_json(entry)},
            app_transactions=[Transaction(app_id(pipeline), entry.sequence)],
        )
        table = folder / "lake" / schema / pipeline
        rows = pa.table({"id": [0, 1]})
        write_deltalake(str(table), rows, commit_properties=properties)
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
