"""A batch in a thread of its own, which Spark need not wait for to its end.

What Spark does between two batches (it notes that one has ended, asks Kafka, plans the next one)
takes longer than a small commit. So it does that while the commit is made, and while the batch is
read, too, where another full one waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[Callable[[], object]], object]
"""One batch; it is given what it may call once nobody need wait for it to be read."""


class Beside:
    """Does one piece of work at a time, in one thread, which keeps its connection to the JVM."""

    def __init__(self) -> None:
        self.fault: BaseException | None = None
        """What the newest piece raised. Spark would give back only its text."""
        self.done = 0
        """How many pieces have ended well."""
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._goes_on, self._idle = threading.Event(), threading.Event()
        self._idle.set()

    def start(self, prepare: Callable[[], object]) -> None:
        """Start the thread, which first calls ``prepare``; ``settle`` raises what that raises."""
        self._idle.clear()
        self._work.put(lambda was_read: prepare())
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    @property
    def at_rest(self) -> bool:
        """Whether nothing is being done, and the last piece, if there was one, has ended well."""
        return self._idle.is_set() and self.fault is None  # in this order: a fault comes before

    def begin(self, work: Work) -> None:
        """Begin with it; return once it was read or has ended. Raises what it raised till then.

        ``settle`` comes before.
        """

        def counted(was_read: Callable[[], object]) -> None:
            work(was_read)
            self.done += 1

        self._goes_on.clear()
        self._idle.clear()
        self._work.put(counted)
        self._goes_on.wait()
        if self.fault is not None:
            raise self.fault

    def settle(self) -> None:
        """Wait until the work has ended. Raises what it raised, each time."""
        self._idle.wait()
        if self.fault is not None:
            raise self.fault

    def end(self) -> None:
        """Wait until the work has ended; there will be no more."""
        self._idle.wait()
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work(self._goes_on.set)
            except BaseException as fault:  # whoever waits has to hear of it
                self.fault = fault
            self._goes_on.set()
            self._idle.set()
