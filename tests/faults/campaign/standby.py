"""Drivers that wait for orders: one that works, one whose session comes up meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.tally import Violated
from tests.faults.campaign.world import PIPELINES, World

PATIENCE_S = 300
"""A table that was emptied is filled anew from the start of its topics."""


class Standby:
    """The two drivers of a world. ``preloaded``: see ``process.DriverProcess``."""

    def __init__(self, world: World, preloaded: Path | None) -> None:
        self._world = world
        self._preloaded = preloaded
        self._drivers: list[DriverProcess] = []
        self._born = 0

    def next(self) -> DriverProcess:
        """The driver whose turn it is; the other one is on its way."""
        while len(self._drivers) < 2:
            self._born += 1
            folder = self._world.folder / "sessions" / str(self._born)
            world = self._world
            self._drivers.append(DriverProcess(folder, world.file, world.drivers, self._preloaded))
        return self._drivers[0]

    def besides(self, driver: DriverProcess) -> DriverProcess:
        """The other driver."""
        return next(each for each in self._drivers if each is not driver)

    @contextmanager
    def guest(self) -> Iterator[DriverProcess]:
        """One more driver, in the JVM of the one whose turn it is; it has ended with the block."""
        host = self.next()
        host.order({"do": "lend"})
        there = host.answer(PATIENCE_S)
        if there is None:
            raise Violated("a driver does not lend its JVM")
        self._born += 1
        folder = self._world.folder / "sessions" / str(self._born)
        guest = DriverProcess(folder, self._world.file, self._world.drivers, None, there)
        try:
            yield guest
        finally:
            guest.end()
            host.order({})
            host.answer(PATIENCE_S)

    def lose(self, driver: DriverProcess) -> None:
        """A driver has died: what is left of it ends, and the other one takes its place."""
        self._drivers = [each for each in self._drivers if each is not driver]
        driver.end()

    def order(
        self,
        do: str,
        names: Sequence[str],
        *,
        by: DriverProcess | None = None,
        meanwhile: Callable[[], bool] = lambda: False,
        **more: Any,
    ) -> dict[str, Any]:
        """Have something done, and return the answer. Raises Violated where none comes.

        ``meanwhile``: see ``DriverProcess.answer``.
        """
        driver = by or self.next()
        self.give(driver, do, names, **more)
        answer = driver.answer(PATIENCE_S, meanwhile)
        if answer is None:
            raise Violated(f"no answer to {do} within {PATIENCE_S} s")
        return answer

    def give(
        self,
        driver: DriverProcess,
        do: str,
        names: Sequence[str],
        *,
        points: str = "",
        **more: Any,
    ) -> None:
        """Give an order; ``points`` are the failpoints that are armed for it."""
        environment = {
            "RIVERMOUTH_FAILPOINTS": points,
            "RIVERMOUTH_TRACE": str(self._world.trace),
        }
        order = {"do": do, "names": [*names], "environment": environment}
        world = {"file": str(self._world.file), "scratch": str(self._world.scratch)}
        driver.order({**order, **world, **more})

    def must_halt(self, table: str, code: str, why: str) -> None:
        """The next run of this pipeline stops with the code, and the others come to their end."""
        answer = self.order("run", PIPELINES)
        if answer["codes"].get(table) != code:
            raise Violated(f"{why}, {table}: expected {code}, found {answer}")
        clean(answer, but=(table,))

    def close(self) -> None:
        """End both."""
        for each in self._drivers:
            each.end()
        self._drivers.clear()


def clean(answer: dict[str, Any], but: Sequence[str] = ()) -> None:
    """Raises Violated where a pipeline, but for those of ``but``, did not come to its end."""
    bad = {name: code for name, code in answer["codes"].items() if code and name not in but}
    if bad:
        raise Violated(f"a halt or failure that nobody expected: {answer['errors']}")
