"""What is spilled to disk comes back whole and in order, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.verification.proofs.spill import Buckets, Spill

pytestmark = pytest.mark.unit


def test_bytes_come_back_in_the_order_they_came(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "s", buffered_bytes=4)
    for number in range(6):
        spill.add(("a", number % 2), b"%d" % number)
    assert spill.take(("a", 0)) == b"024"
    assert spill.take(("a", 0)) == b""
    assert spill.take(("a", 1)) == b"135"


def test_values_come_back_in_the_order_they_came(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "s", buffered_bytes=10)
    spill.add_items("x", [1, ("two", b"\n")])
    spill.add_items("y", [0])
    spill.add_items("x", [None])
    assert list(spill.take_items("x")) == [1, ("two", b"\n"), None]
    assert list(spill.take_items("x")) == []
    assert list(spill.take_items("nothing")) == []


def test_items_of_one_key_share_a_bucket_and_keep_their_order(tmp_path: Path) -> None:
    buckets = Buckets(tmp_path / "b", 5, pending_items=7)
    for number in range(60):
        buckets.add((number % 12,), (number, None))
    taken = [list(buckets.take(each)) for each in range(5)]
    homes = {key: n for n, items in enumerate(taken) for key, _ in items}
    assert len(homes) == 12
    assert len({*homes.values()}) > 1, "keys are spread"
    for n, items in enumerate(taken):
        assert all(homes[key] == n for key, _ in items)
        for key in homes:
            numbers = [item[0] for found, item in items if found == key]
            assert numbers == sorted(numbers)
    assert sorted(item[0] for items in taken for _, item in items) == list(range(60))
    assert list(buckets.take(0)) == []


def test_what_met_in_one_bucket_spreads_again_over_others(tmp_path: Path) -> None:
    first = Buckets(tmp_path / "b", 4)
    for number in range(400):
        first.add((number,), (number,), size=10)
    assert (sum(first.items), sum(first.sizes)) == (400, 4000)
    again = Buckets(tmp_path / "again", 4, skip=4)
    taken = [*first.take(2)]
    for key, item in taken:
        again.add(key, item)
    assert len(taken) == first.items[2] == sum(again.items)
    assert max(again.items) < len(taken) / 2
