"""One behaviour of a store: a folder of this machine, and one in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.warehouse.delta.store import STORE_FAULTS, Store

pytestmark = pytest.mark.unit

MAKE: dict[str, Callable[[Path], Store]] = {
    "folder": lambda folder: Store.of_folder(folder / "a b" / "ü"),
    "memory": lambda _: Store.in_memory(),
}


@pytest.fixture(params=MAKE)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MAKE[request.param](tmp_path)


def test_of_two_that_create_one_object_one_succeeds(store: Store) -> None:
    assert store.create("log/1", b"first")
    assert not store.create("log/1", b"second")
    assert store.read("log/1") == b"first"


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.read("log/1") is None
    assert not store.has("log/1")
    assert store.names("log") == []
    store.create("log", b"an object")
    assert store.read("log/1") is None
    assert not store.has("log/1")


def test_names_come_in_order_and_without_what_lies_deeper(store: Store) -> None:
    for each in ("2", "10", "1", "_"):
        store.create(f"log/{each}", b"")
    store.create("log/deep/3", b"")
    files = [each for each in store.names("log") if each != "deep"]
    assert files == ["1", "10", "2", "_"]


def test_an_object_is_read_in_parts(store: Store) -> None:
    store.create("data", b"0123456789")
    with store.opened("data") as opened:
        assert opened.size() == 10
        opened.seek(7)
        assert opened.read() == b"789"
        assert isinstance(opened, pa.NativeFile)


def test_a_folder_that_refuses_raises_a_fault_of_the_store(tmp_path: Path) -> None:
    store = Store.of_folder(tmp_path)
    (tmp_path / "log").symlink_to(tmp_path / "log")
    for act in (
        lambda: store.read("log/1"),
        lambda: store.names("log"),
        lambda: store.create("log/1", b""),
        lambda: store.has("log/1"),
    ):
        with pytest.raises(STORE_FAULTS):
            act()
