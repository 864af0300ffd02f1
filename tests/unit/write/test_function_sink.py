"""What a function as a sink raises in a task."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import pytest

from rivermouth.protocol.batches import Batch
from rivermouth.write.sinks import call

pytestmark = pytest.mark.unit

BATCH = Batch("p", 1, "p-1", ())


def imports_later(rows: object, batch: Batch, partition_id: int) -> None:
    import_module("nowhere_to_be_found")


def fails(rows: object, batch: Batch, partition_id: int) -> None:
    raise KeyError("topic")


@pytest.fixture
def own_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_sink")
    module.__dict__.update(later=imports_later, fails=fails)
    monkeypatch.setitem(sys.modules, "own_sink", module)


@pytest.mark.parametrize("reference", ["nowhere_to_be_found:f", "own_sink:later"])
def test_what_is_missing_is_an_import_that_failed(own_sink: None, reference: str) -> None:
    with pytest.raises(ImportError, match="No module named 'nowhere_to_be_found'"):
        call(reference, BATCH, iter(()))


def test_what_the_function_raises_is_told_as_its_own(own_sink: None) -> None:
    with pytest.raises(RuntimeError, match="RM507: the function failed: KeyError: 'topic'"):
        call("own_sink:fails", BATCH, iter(()))
