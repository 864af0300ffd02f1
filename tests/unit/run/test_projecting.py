"""The one writer of the offsets table: order, one commit for several, waiting, errors, no loss."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field

import pytest

from rivermouth.errors import ProjectionFailed, RetentionLost
from rivermouth.protocol.commits import Recorded
from rivermouth.run.projecting import AtOnce, Entries, OffsetsWriter, flushed
from tests.builders import entry_after, span
from tests.memory import MemoryOffsets

pytestmark = pytest.mark.unit

PATIENCE_S = 10.0
SOON_S, NEVER_S = 0.2, 3600.0


@dataclass
class GatedOffsets(MemoryOffsets):
    """Waits with each write until the gate is open; refuses pipelines."""

    gate: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    commits: list[dict[str, list[int]]] = field(default_factory=list)
    refused: dict[str, Exception] = field(default_factory=dict)
    refused_once: bool = False

    def project(self, entries: Sequence[Recorded]) -> None:
        self.begun.set()
        assert self.gate.wait(PATIENCE_S)
        commit: dict[str, list[int]] = {}
        for each in entries:
            commit.setdefault(each.entry.pipeline, []).append(each.entry.sequence)
        for pipeline in commit:
            refusal = self.refused.get(pipeline)
            if refusal is not None:
                if self.refused_once:
                    self.refused.clear()
                raise refusal
        super().project(entries)
        self.commits.append(commit)

    def open(self) -> GatedOffsets:
        self.gate.set()
        return self

    def sequences(self, pipeline: str) -> list[int]:
        entries = (each.entry for each in self.projected)
        return [each.sequence for each in entries if each.pipeline == pipeline]


def entries(pipeline: str, number: int) -> list[Entries]:
    """Consecutive entries of a pipeline, each to be put by itself."""
    newest, found = None, list[Entries]()
    for n in range(number):
        newest = entry_after(newest, span(n, n + 1), pipeline=pipeline)
        found.append([Recorded(n + 1, 0, newest)])
    return found


def aside(act: Callable[[], object]) -> Future[object]:
    """Carry it out in a thread of its own."""
    pool = ThreadPoolExecutor(1)
    future: Future[object] = pool.submit(act)
    pool.shutdown(wait=False)
    return future


def again_and_again(act: Callable[[], object]) -> None:
    while True:
        act()


def halting(writer: OffsetsWriter, entries: Entries) -> None:
    """A batch that is handed over, and then a guard that halts."""
    with flushed(writer, "a"):
        writer.put(entries)
        raise RetentionLost("the block's")


def test_what_all_pipelines_committed_in_a_moment_is_one_commit_in_order() -> None:
    offsets = GatedOffsets().open()
    with OffsetsWriter(offsets, moment_s=NEVER_S) as writer:  # its end writes what is left
        for a, b in zip(entries("a", 3), entries("b", 3), strict=True):
            writer.put(a)
            writer.put(b)
    assert offsets.commits == [{"a": [1, 2, 3], "b": [1, 2, 3]}]
    assert offsets.txns == {"a": 3, "b": 3}


def test_what_comes_while_a_write_is_under_way_is_the_next_commit() -> None:
    offsets = GatedOffsets()
    first, second, third = entries("a", 3)
    with OffsetsWriter(offsets, moment_s=0.0) as writer:
        writer.put(first)
        assert offsets.begun.wait(PATIENCE_S)
        writer.put(second)
        writer.put(third)
        assert offsets.sequences("a") == [], "no batch waits for the offsets table"
        offsets.open()
        writer.flush("a")
        assert offsets.sequences("a") == [1, 2, 3]
    assert offsets.commits == [{"a": [1]}, {"a": [2, 3]}]


def test_a_flush_does_not_wait_for_the_moment_to_pass_and_returns_when_all_is_there() -> None:
    offsets = GatedOffsets()
    with OffsetsWriter(offsets, moment_s=NEVER_S) as writer:
        for each in entries("a", 2):
            writer.put(each)
        waiting = aside(lambda: writer.flush("a"))
        assert offsets.begun.wait(PATIENCE_S)
        assert not waiting.done()
        offsets.open()
        waiting.result(PATIENCE_S)
        assert offsets.sequences("a") == [1, 2]


def test_a_pipeline_that_is_far_ahead_waits_and_no_other_does() -> None:
    offsets = GatedOffsets()
    first, second, third = entries("a", 3)
    with OffsetsWriter(offsets, moment_s=0.0, most=2) as writer:
        writer.put(first)
        assert offsets.begun.wait(PATIENCE_S)
        writer.put(second)
        ahead = aside(lambda: writer.put(third))
        writer.put(entries("b", 1)[0])
        with pytest.raises(FutureTimeout):
            ahead.result(SOON_S)
        offsets.open()
        ahead.result(PATIENCE_S)
    assert (offsets.sequences("a"), offsets.sequences("b")) == ([1, 2, 3], [1])


def test_half_of_what_may_wait_is_written_before_the_moment_has_passed() -> None:
    offsets = GatedOffsets().open()
    with OffsetsWriter(offsets, moment_s=NEVER_S, most=4) as writer:
        for each in entries("a", 2):
            writer.put(each)
        assert offsets.begun.wait(PATIENCE_S)


@pytest.mark.parametrize("fault", [ProjectionFailed("no room"), ValueError("a defect")], ids=repr)
def test_an_error_comes_up_once_in_its_pipeline_and_no_other_suffers(fault: Exception) -> None:
    offsets = GatedOffsets().open()
    offsets.refused["a"] = fault
    a, b = entries("a", 2), entries("b", 2)
    with OffsetsWriter(offsets, moment_s=SOON_S) as writer:
        writer.put(a[0])
        writer.put(b[0])
        writer.flush("b")
        with pytest.raises(type(fault)) as raised:
            writer.flush("a")
        assert raised.value is fault
        writer.flush("a")
        writer.put(b[1])
    assert (offsets.sequences("a"), offsets.sequences("b")) == ([], [1, 2])


def test_after_an_error_no_later_entry_is_written_before_the_earlier_one() -> None:
    offsets = GatedOffsets(refused_once=True)
    offsets.refused["a"] = ProjectionFailed("no room")
    first, second, third = entries("a", 3)
    with OffsetsWriter(offsets, moment_s=0.0) as writer:
        writer.put(first)
        assert offsets.begun.wait(PATIENCE_S)
        writer.put(second)
        offsets.open()
        with pytest.raises(ProjectionFailed):
            writer.flush("a")
        assert offsets.sequences("a") == [], "the second one was dropped with the first"
        for each in (first, second, third):  # as the next opening finds them in the log
            writer.put(each)
    assert offsets.sequences("a") == [1, 2, 3]


def test_an_error_comes_up_in_the_put_that_follows_and_what_that_brings_is_not_kept() -> None:
    offsets = GatedOffsets().open()
    offsets.refused["a"] = ProjectionFailed("no room")
    first, second = entries("a", 2)
    with OffsetsWriter(offsets, moment_s=0.0) as writer:
        writer.put(first)
        assert offsets.begun.wait(PATIENCE_S)
        with pytest.raises(ProjectionFailed):
            again_and_again(lambda: writer.put(second))
    assert offsets.sequences("a") == []


def test_a_block_ends_with_all_of_it_written_and_raises_what_kept_it_from_that() -> None:
    offsets = GatedOffsets().open()
    first, second = entries("a", 2)
    with OffsetsWriter(offsets, moment_s=NEVER_S) as writer:
        with flushed(writer, "a"):
            writer.put(first)
        assert offsets.sequences("a") == [1]
        offsets.refused["a"] = ProjectionFailed("no room")
        with pytest.raises(ProjectionFailed), flushed(writer, "a"):
            writer.put(second)
        with pytest.raises(RetentionLost, match="the block's"):
            halting(writer, second)
        writer.flush("a")


def test_at_once_is_at_once() -> None:
    offsets = MemoryOffsets()
    for each in entries("a", 2):
        AtOnce(offsets).put(each)
        AtOnce(offsets).flush("a")
    AtOnce(offsets).put([])
    assert offsets.txns == {"a": 2}


class PanicException(BaseException):
    """As that of what is written in Rust."""


def told_by(writer: OffsetsWriter, pipeline: str) -> None:
    """What its ``flush`` tells; nobody waits for ever where the writer has ended."""
    told: Future[None] = Future()

    def flushed() -> None:
        try:
            writer.flush(pipeline)
            told.set_result(None)
        except Exception as raised:
            told.set_exception(raised)

    threading.Thread(target=flushed, daemon=True).start()
    told.result(PATIENCE_S)


def panics(*_: object) -> None:
    raise PanicException("index out of bounds")


def test_a_panic_of_a_library_is_an_error_of_the_pipeline_and_ends_no_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryOffsets, "project", panics)
    with OffsetsWriter(MemoryOffsets(), moment_s=0.0) as writer:
        for _ in range(2):
            writer.put(entries("a", 1)[0])
            with pytest.raises(ProjectionFailed, match="index out of bounds"):
                told_by(writer, "a")


@pytest.mark.parametrize("fault", [OSError("no room to compact"), PanicException("out of bounds")])
def test_what_comes_after_a_write_may_fail(fault: BaseException) -> None:
    offsets, called = MemoryOffsets(), []

    def after() -> None:
        called.append(len(offsets.projected))
        raise fault

    with OffsetsWriter(offsets, moment_s=0.0, after=after) as writer:
        for each in entries("a", 2):
            writer.put(each)
            told_by(writer, "a")
    assert [each.entry.sequence for each in offsets.projected] == [1, 2]
