"""Which rows a DELETE took, where a row may be there twice: two frames in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from rivermouth.warehouse import deleted_rows as module
from tests.builders import span

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Places:
    """Offsets, as a frame holds them: one may be there several times."""

    rows: Counter[int]

    def subtract(self, other: Places) -> Places:
        return Places(Counter({*self.rows} - {*other.rows}))

    def exceptAll(self, other: Places) -> Places:
        return Places(self.rows - other.rows)

    def distinct(self) -> Places:
        return Places(Counter({*self.rows}))

    def limit(self, most: int) -> Places:
        return self

    def collect(self) -> list[dict[str, Any]]:
        names = ("topic", "partition", "first", "until")
        return [dict(zip(names, ("t", 0, each, each + 1), strict=True)) for each in self.rows]


class Table:
    """Stands for an address: each version has its rows."""

    def __init__(self, *versions: Iterable[int]) -> None:
        self._versions = [Places(Counter(each)) for each in versions]

    def at(self, session: object, version: int) -> Places:
        return self._versions[version]


@pytest.mark.parametrize(
    ("shared", "took"), [(False, [span(3, 4)]), (True, [span(2, 3), span(3, 4)])]
)
def test_one_of_two_rows_at_an_offset_is_gone_only_where_it_may_be_that_of_another_record(
    monkeypatch: pytest.MonkeyPatch, shared: bool, took: object
) -> None:
    """Without an accepted change both are rows of one record, which is still there."""
    monkeypatch.setattr(module, "_places", lambda rows: rows)
    monkeypatch.setattr(module, "_runs", lambda places: places)
    table: Any = Table([1, 2, 2, 3], [1, 2])
    session: Any = None
    assert module.deleted_rows(session, table, 1, 9, shared) == took
