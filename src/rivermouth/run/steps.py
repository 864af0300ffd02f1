"""The steps of one commit: stage, guard, commit, after. See ``write.landing``.

Kafka is asked while the batch is staged, because nobody sees yet what that makes; the commit waits
for the answer. Where a leader changed meanwhile, what was read may be of a log that was cut since:
so the batch is staged again, after that answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from rivermouth import debug
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from rivermouth.write.landing import Staged

Answer = TypeVar("Answer")
Stage = Callable[[CommitPlan, ExitStack], "Staged"]
"""Reads a batch for the commit of a plan; what is kept for the next steps is kept in the stack."""
Guard = Callable[[CommitPlan], CommitPlan]
"""The plan with what Kafka says now. Raises the Halt that applies, or a SourceError."""


class Steps:
    """The steps of a commit, for one attempt after the other.

    ``guard`` asks Kafka beside the staging of each attempt; None: somebody has asked before.
    ``was_read`` is called once the records were read, so that the next batch can be planned.
    """

    def __init__(
        self,
        stage: Stage,
        guard: Guard | None = None,
        was_read: Callable[[], object] = lambda: None,
    ) -> None:
        self._stage, self._guard, self._was_read = stage, guard, was_read
        self._resources = ExitStack()
        self._staged: Staged | None = None

    def write(self, plan: CommitPlan) -> None:
        """Stage the batch, wait for the guard, make the commit."""
        self._staged = None
        plan, staged = self._stage_beside(plan)
        if staged.was_read:
            self._was_read()
        self._staged = staged
        staged.commit(plan)

    def after(self, plan: CommitPlan) -> None:
        """What is left once the commit was read back."""
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.after(plan)

    def give_up(self, plan: CommitPlan, fault: Exception) -> None:
        """``fault`` has ended the commit. Raises where nobody will do what is left."""
        if self._staged is not None:
            self._staged.give_up(plan, fault)

    def close(self) -> None:
        """Let go of what was kept."""
        self._resources.close()

    def _stage_anew(self, plan: CommitPlan) -> Staged:
        self._resources.close()
        return self._stage(plan, self._resources)

    def _stage_beside(self, plan: CommitPlan) -> tuple[CommitPlan, Staged]:
        guard = self._guard
        if guard is None:
            return plan, self._stage_anew(plan)
        with concurrently(lambda: guard(plan)) as answer:
            staged = self._stage_anew(plan)
            now = answer()
        again = leader_changed(plan.draft.ranges, plan.draft.epochs, now.draft.epochs)
        debug.step(plan.draft.pipeline, "see", commit=plan.commit, again=again)
        return now, self._stage_anew(now) if again and staged.was_read else staged


@contextmanager
def concurrently(ask: Callable[[], Answer]) -> Iterator[Callable[[], Answer]]:
    """``ask`` goes on in a thread of its own; what the block is given waits for its answer.

    The block ends when ``ask`` has ended. If it fails and ``ask`` has failed, too, that is
    raised: a topic that is gone may well be why it cannot be read.
    """
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as fault:  # whoever waits has to hear of it
            answer.set_exception(fault)

    # Not by an executor: that starts no thread once the interpreter's main thread has ended.
    thread = threading.Thread(target=run, name="kafka")
    thread.start()
    try:
        yield answer.result
    except Exception:
        answer.result()
        raise
    finally:
        thread.join()


def leader_changed(
    ranges: Iterable[OffsetRange],
    before: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, int],
) -> bool:
    """Whether a partition of ``ranges`` has another leader epoch ``now`` than ``before``, or its
    first known one.

    What was read in between may be of a log that was cut since.
    """
    read = (each.topic_partition for each in ranges)
    return any(each in now and now[each] != before.get(each) for each in read)
