"""Deletion vectors: the layout of the protocol, and what is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.vectors import (
    Vector,
    VectorUnreadable,
    from_z85,
    read_vector,
    to_z85,
    vector_file,
)

pytestmark = pytest.mark.unit

NAME = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
# As PROTOCOL.md of delta-io/delta has it, "Derived Fields".
IN_A_FOLDER = Vector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)


def test_z85_is_that_of_its_specification() -> None:
    assert to_z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert from_z85("HelloWorld") == bytes.fromhex("864FD26FB559F75B")
    with pytest.raises(VectorUnreadable, match="no Z85"):
        from_z85("Hello ")


@given(st.binary(max_size=64).map(lambda data: data[: len(data) // 4 * 4]))
def test_z85_gives_back_what_it_was_given(data: bytes) -> None:
    assert from_z85(to_z85(data)) == data


def test_the_file_of_a_vector_is_named_by_its_prefix_and_its_uuid() -> None:
    assert IN_A_FOLDER.file == f"ab/deletion_vector_{NAME}.bin"
    assert replace(IN_A_FOLDER, path=to_z85(NAME.bytes)).file == f"deletion_vector_{NAME}.bin"
    assert replace(IN_A_FOLDER, storage="p", path="s3://b/x.bin").file is None


def test_a_vector_that_stands_in_the_log_is_read() -> None:
    data = struct.pack("<I", 1681511377) + BitMap64([3, 4, 7, 11, 18, 29]).serialize()
    inline = Vector("i", to_z85(data), None, len(data), 6)
    assert [*read_vector(Store.in_memory(), inline)] == [3, 4, 7, 11, 18, 29]


@given(st.lists(st.frozensets(st.integers(0, 1 << 34), min_size=1, max_size=20), max_size=4))
def test_vectors_are_read_as_they_were_written(deleted: list[frozenset[int]]) -> None:
    store = Store.in_memory()
    content, vectors = vector_file(NAME, [BitMap64(rows) for rows in deleted])
    for vector in vectors[:1]:
        assert store.create(str(vector.file), content)
    assert [Vector.of(each.as_dict()) for each in vectors] == vectors
    assert len({each.key for each in vectors}) == len(deleted)
    assert [frozenset(read_vector(store, each)) for each in vectors] == deleted


def damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("what", "at"), [("the length", 4), ("the magic", 5), ("the bitmap", 20), ("the sum", -1)]
)
def test_a_damaged_vector_is_never_taken_for_another_one(what: str, at: int) -> None:
    content, [vector] = vector_file(NAME, [BitMap64([1, 2, 3])])
    store = Store.in_memory()
    store.create(str(vector.file), damaged(content, at % len(content)))
    with pytest.raises(VectorUnreadable):
        read_vector(store, vector)


def test_a_vector_of_other_rows_than_said_or_elsewhere_is_refused() -> None:
    store = Store.in_memory()
    content, [vector] = vector_file(NAME, [BitMap64([1, 2, 3])])
    store.create(str(vector.file), content)
    with pytest.raises(VectorUnreadable, match="3 rows instead of 4"):
        read_vector(store, replace(vector, rows=4))
    with pytest.raises(VectorUnreadable, match="outside of the table"):
        read_vector(store, replace(vector, storage="p"))
    with pytest.raises(VectorUnreadable, match="no deletion vector"):
        read_vector(store, Vector("i", to_z85(struct.pack("<II", 1, 2)), None, 8, 1))
