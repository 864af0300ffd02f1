"""Writing positions into consumer groups, for monitors: beside the batches, never in their way.

Nothing is decided by these groups. The ledger is the truth, and what a group lacks is written with
the next position, or at the next start. So what fails here is said, and the run goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from rivermouth.config import Pipeline
from rivermouth.errors import KafkaUnsettled, RivermouthError
from rivermouth.kafka.groups import Groups
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.run.report import CommitReport, Listener, MirrorReport, OpenReport, PassingOn
from rivermouth.run.supervision import as_error

EVERY_S = 5.0
"""So often a group is written at most."""
AGAIN_S = 60.0
"""So long after a failure it is tried again."""
FRESH_S = 3600.0
"""So often an unchanged position is written again: Kafka forgets offsets that nobody commits."""
CLOSING_S = 10.0
"""So long the end of a run waits at most for what is still missing."""

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Mirror:
    """One group: the newest position, what was written of it last, and how that went.

    ``tried_s`` is the time of the last try, by a clock that never goes back; None: there was none.
    """

    position: Offsets = field(default_factory=dict)
    written: Offsets = field(default_factory=dict)
    tried_s: float | None = None
    failed: bool = False

    def is_due(self, now_s: float, *, closing: bool = False) -> bool:
        """Whether to write now; ``closing``: it is the last chance."""
        missing = self.position != self.written
        if closing or self.tried_s is None:
            return missing
        pause_s = AGAIN_S if self.failed else EVERY_S if missing else FRESH_S
        return now_s - self.tried_s >= pause_s


class Mirroring(PassingOn):
    """A listener that passes all on, and keeps the groups of ``pipelines`` up to date meanwhile.

    A thread writes while the context is open. It ends with it: what is missing is written then, for
    at most ``closing_s``. ``tick_s`` is how often it looks whether a group is due.
    """

    def __init__(
        self,
        listener: Listener,
        pipelines: Iterable[Pipeline],
        groups: Groups,
        *,
        tick_s: float = 1.0,
        closing_s: float = CLOSING_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(listener)
        self._pipelines = {each.name: each for each in pipelines}
        self._groups = groups
        self._tick_s = tick_s
        self._closing_s = closing_s
        self._now_s = now_s
        self._lock = threading.Lock()
        self._mirrors: dict[str, Mirror] = {}
        self._topics: dict[str, frozenset[str]] = {}
        self._said: set[tuple[str, str]] = set()
        self._closing = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    def __enter__(self) -> Mirroring:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(self._closing_s)
        late = KafkaUnsettled(
            "the run ended before the group was written", remedy="The next run writes it"
        )
        with self._lock:
            self._over = True  # nothing more is written, and a write that still hangs tells nothing
            mirrors = self._mirrors.items()
            left = [name for name, it in mirrors if it.position != it.written and not it.failed]
        for group in left:
            self._tell(group, late)

    def opened(self, report: OpenReport) -> None:
        self._hear(report.pipeline, report.position, {each.topic for each in report.position})
        super().opened(report)

    def committed(self, report: CommitReport) -> None:
        self._hear(report.pipeline, report.position)
        super().committed(report)

    def write_due(self, *, closing: bool = False) -> None:
        """Write each group that is due. What fails is told once for each group and cause."""
        for group in [*self._mirrors]:
            mirror = self._mirrors[group]
            if mirror.is_due(self._now_s(), closing=closing) and not self._over:
                self._write(group, mirror.position)

    def _hear(self, name: str, position: Position, read: set[str] | None = None) -> None:
        """Note the position of the topics that the pipeline reads: ``read`` since an opening.

        An entry that an opening writes comes before its report, which has the same position.
        """
        source = self._pipelines[name].source
        group, has = source.mirror_group, source.topics.has
        if group is None:
            return
        with self._lock:
            before = self._topics.get(name, frozenset())
            topics = self._topics[name] = before if read is None else frozenset(read)
            mirror = self._mirrors.get(group, Mirror())
            others = {
                at: n
                for at, n in mirror.position.items()
                if not (at.topic in before and has(at.topic, at.partition))
            }
            stood = position.offsets.items()
            ours = {at: n for at, n in stood if at.topic in topics and has(at.topic, at.partition)}
            if others or ours:
                self._mirrors[group] = replace(mirror, position={**others, **ours})

    def _write(self, group: str, position: Offsets) -> None:
        fault: Exception | None = None
        try:
            self._groups.write(group, position)
        except Exception as raised:  # the thread serves the other groups, too
            fault = raised
        with self._lock:
            tried = replace(self._mirrors[group], tried_s=self._now_s(), failed=fault is not None)
            self._mirrors[group] = tried if fault else replace(tried, written=position)
        if fault is not None:
            self._say(group, fault)

    def _say(self, group: str, fault: Exception) -> None:
        error = as_error(fault, f"group {group}")
        if (group, error.what) not in self._said and not self._over:
            self._said.add((group, error.what))
            self._tell(group, error)

    def _tell(self, group: str, error: RivermouthError) -> None:
        pipelines = self._pipelines.values()
        names = tuple(each.name for each in pipelines if each.source.mirror_group == group)
        with suppress(Exception):  # a listener may not know mirrors; the groups are written on
            self._listener.not_mirrored(MirrorReport(names, group, error))

    def _run(self) -> None:
        while not self._closing.wait(self._tick_s):
            self.write_due()
        self.write_due(closing=True)
        self._groups.close()


@contextmanager
def mirroring(
    listener: Listener, pipelines: Iterable[Pipeline], groups: Groups
) -> Iterator[Listener]:
    """The listener to tell while the block runs; without any ``mirror_group`` the given one."""
    known = [*pipelines]
    if not any(each.source.mirror_group for each in known):
        yield listener
        return
    with Mirroring(listener, known, groups) as mirror:
        yield mirror
