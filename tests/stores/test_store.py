"""One behaviour of a store: a folder of this machine, a bucket, and one in memory."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.storage.store import STORE_FAULTS, Store
from tests.stores.lake import lake_in

pytestmark = pytest.mark.slow

KINDS = ("folder", "memory", "bucket")
WRITERS = 20


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store.of_folder(tmp_path / "a b" / "ü")
    if request.param == "memory":
        return Store.in_memory()
    return lake_in(request.getfixturevalue("rivermouth_store"), f"{tmp_path.name} ü").below("a b")


def test_of_two_that_create_one_object_one_succeeds(store: Store) -> None:
    assert store.create("log/1", b"first")
    assert not store.create("log/1", b"second")
    assert store.read("log/1") == b"first"


def test_of_many_that_create_one_object_at_once_one_succeeds(store: Store) -> None:
    for n in range(10):
        with ThreadPoolExecutor(WRITERS) as threads:
            create = partial(store.create, f"log/{n}")
            won = [*threads.map(create, (b"%d" % each * 10_000 for each in range(WRITERS)))]
        assert won.count(True) == 1
        assert store.read(f"log/{n}") == b"%d" % won.index(True) * 10_000


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.read("log/1") is None
    assert not store.has("log/1")
    assert store.names("log") == []
    store.delete(["log/1"])
    if store.client.scheme != "s3":  # those that speak S3 here keep objects as files
        store.create("log", b"an object")
        assert store.read("log/1") is None
        assert not store.has("log/1")


def test_names_come_in_order_behind_one_and_without_what_lies_deeper(store: Store) -> None:
    for each in ("2", "10", "1", "_"):
        store.create(f"log/{each}", b"")
    store.create("log/deep/3", b"")
    files = [each for each in store.names("log") if each != "deep"]
    assert files == ["1", "10", "2", "_"]
    assert [each for each in store.names("log", "10") if each != "deep"] == ["2", "_"]


def test_an_object_is_read_in_parts(store: Store) -> None:
    store.create("data", b"0123456789")
    assert store.part("data", 2, 3) == b"234"
    with store.opened("data") as opened:
        assert opened.size() == 10
        opened.seek(7)
        assert opened.read() == b"789"
        assert isinstance(opened, pa.NativeFile)


def test_what_is_removed_is_gone(store: Store) -> None:
    store.create("x", b"1")
    store.delete(["x", "y"])
    assert not store.has("x")
    assert store.create("x", b"2")


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


def test_objects_below_are_found_but_for_names_that_are_not_taken(store: Store) -> None:
    for each in ("b", "_log/1", "deep/er/c", "deep/_d", "a"):
        store.create(each, b"12")
    found = {each.path: each for each in store.below(lambda name: not name.startswith("_"))}
    assert {*found} == {"a", "b", "deep/er/c"}
    assert {each.size for each in found.values()} == {2}
    assert all(abs(each.modified_ms / 1000 - time.time()) < 60 for each in found.values())


def test_below_a_folder_that_is_not_there_is_nothing(store: Store) -> None:
    assert [*store.below(lambda name: True, "none")] == []


def test_an_upload_is_there_whole_once_it_is_finished(store: Store) -> None:
    upload = store.upload("p=1/data")
    upload.file.write(b"0" * 3_000_000)
    assert upload.size == 3_000_000
    if store.folder is None:
        assert not store.has("p=1/data")
    found = upload.finished()
    assert (found.path, found.size) == ("p=1/data", 3_000_000)
    assert store.size("p=1/data") == 3_000_000
    given_up = store.upload("p=1/more")
    given_up.file.write(b"0")
    given_up.discard()
    assert not store.has("p=1/more")


def test_a_store_is_the_same_for_a_task(store: Store) -> None:
    given: Store = pickle.loads(pickle.dumps(store))
    store.put("x", b"1")
    store.put("x", b"2")
    if given.folder is None and given.client.scheme != "memory":
        assert given == store
    assert given.read("x") == b"2"
