"""The demo's records, its folder and its arithmetic; the story itself runs in tests/kafka."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.errors import SetupError
from rivermouth.local import demo_records
from rivermouth.local.commands import typed
from rivermouth.local.demo import Sizes, configure, recreate

pytestmark = pytest.mark.unit

COUNT = 30_000


def good(value: bytes | None, field: str) -> bool:
    try:
        parsed = json.loads(value or b"")
    except ValueError:
        return False
    return isinstance(parsed, dict) and isinstance(parsed.get(field), int)


def test_the_records_are_the_same_at_every_run() -> None:
    assert list(demo_records.bid_records(2_000)) == list(demo_records.bid_records(2_000))
    assert list(demo_records.order_records(2_000)) == list(demo_records.order_records(2_000))


def test_one_bid_in_a_thousand_is_bad_in_several_ways_and_the_rest_is_of_real_size() -> None:
    bids = list(demo_records.bid_records(COUNT))
    bad = [value for _, value, _ in bids if not good(value, "auction")]
    assert len(bids) == COUNT
    assert len(bad) == COUNT // 1_000
    assert len(set(bad)) >= 5
    sizes = [len(value or b"") for _, value, _ in bids if good(value, "auction")]
    assert 200 <= sum(sizes) / len(sizes) <= 250
    assert {place for *_, place in bids} == set(range(demo_records.BID_PARTITIONS))


def test_orders_are_changed_in_one_partition_each_with_tombstones_and_bad_records() -> None:
    changes = list(demo_records.order_records(COUNT))
    assert len(changes) == COUNT
    places: dict[bytes, set[int]] = {}
    for key, _, place in changes:
        assert key is not None
        places.setdefault(key, set()).add(place)
    assert max(map(len, places.values())) == 1
    assert len(places) >= demo_records.ORDERS - 50
    kinds = Counter(
        "tombstone" if value is None else "good" if good(value, "order_id") else "bad"
        for _, value, _ in changes
    )
    assert 0.008 < kinds["tombstone"] / COUNT < 0.012
    assert 0 < kinds["bad"] <= COUNT // 1_000


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(bids=9_000, changes=3_000)])
def test_each_topic_is_read_in_exactly_three_batches(sizes: Sizes) -> None:
    bids_per_batch, changes_per_batch = sizes.per_batch
    markers = demo_records.ORDER_PARTITIONS
    assert 2 * bids_per_batch < sizes.bids <= 3 * bids_per_batch
    offsets = sizes.changes + sizes.aborted + markers
    assert 2 * changes_per_batch < offsets <= 3 * changes_per_batch


def test_the_folder_is_made_anew_and_holds_a_configuration_that_loads(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    recreate(folder)
    (folder / "lake").mkdir()
    recreate(folder)
    assert not (folder / "lake").exists(), "that of an earlier demo"
    file = configure(folder, "localhost:9092", 110, 22)
    config = load(file)
    assert config.warehouse == folder / "lake"
    assert config.pipelines["bids"].target.mode == "append"
    assert config.pipelines["orders"].target.mode == "upsert"
    assert config.pipelines["bids"].source.max_offsets_per_trigger == 110
    assert 10 <= len(file.read_text(encoding="utf-8").splitlines()) <= 20


def test_a_folder_that_no_demo_made_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(SetupError, match="no demo made") as refused:
        recreate(tmp_path)
    assert refused.value.exit_code == 2
    assert (tmp_path / "thesis.txt").exists()
    with pytest.raises(SetupError, match="there is a file"):
        recreate(tmp_path / "thesis.txt")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run", "a.yml"), "rivermouth run a.yml"),
        (("run", "my lake.yml"), "rivermouth run 'my lake.yml'"),
        (("sql", "SELECT 'a'"), "rivermouth sql \"SELECT 'a'\""),
        (("sql", "SELECT '$HOME'"), "rivermouth sql 'SELECT '\"'\"'$HOME'\"'\"''"),
    ],
)
def test_a_command_is_shown_as_a_shell_takes_it(words: tuple[str, ...], line: str) -> None:
    assert typed(*words) == line
