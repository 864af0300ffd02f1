"""``python -m tests.faults.soak --minutes 60 --pipelines 40 --seed 1 [--picture FILE]``.

Many pipelines run continuously in one process, while the broker restarts, partitions are added, the
driver is killed, and a table is restored and its halt accepted. At the end a run drains what is
left, and ``verify`` proves every pipeline. The last line is JSON; ``growth`` is the resident memory
of the last quarter divided by that of the quarter before, ``live_heap_mb`` what the JVM holds in
the middle of the time and at its end, when all garbage is collected. Exit code 1 where anything was
violated or given up: a pipeline stopped for good, ``verify`` found something or read another number
of records than were fed, the feed ended early, or ``growth`` is above 1.05.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rivermouth.local.broker import Broker
from tests.faults.seeded import command
from tests.faults.soak.feed import EVERY_S, Feed
from tests.faults.soak.fleet import Fleet
from tests.faults.soak.judging import differing, grown
from tests.faults.soak.memory import growth, live_heap_mb, sampled
from tests.faults.soak.picture import picture
from tests.faults.soak.schedule import Event, Happening, schedule
from tests.threads import repeating

PATIENT = {"broker.session.timeout.ms": "30000"}


def happen(fleet: Fleet, event: Event) -> None:
    """Do to the fleet what the event says."""
    name = fleet.names[event.pipeline]
    if event.what is Happening.RESTART_BROKER:
        fleet.broker.stop()
        fleet.broker.start()
    elif event.what is Happening.KILL:
        fleet.kill()
        fleet.start()
    elif event.what is Happening.ADD_PARTITION:
        fleet.add_partition(name)
    else:
        fleet.restore(name)


def soak(fleet: Fleet, events: Sequence[Event], whole_s: float) -> list[float]:
    """Run to the end; return the live heap in the middle of the time, and at its end.

    The fleet notes what gave up: a driver that ended, or a pipeline in it.
    """
    began, left, heap = time.monotonic(), list(events), list[float]()
    fleet.start()
    while (at := time.monotonic() - began) < whole_s:
        if left and left[0].at_s <= at:
            event = left.pop(0)
            print(f"{at:6.0f} s: {event.what.value}, {fleet.names[event.pipeline]}", flush=True)
            happen(fleet, event)
        if not heap and at >= whole_s / 2:
            heap.append(live_heap_mb(fleet.group()))
        if fleet.ran_away():
            fleet.given_up.append(f"the driver ended by itself after {at:.0f} s")
            fleet.kill()
            fleet.start()
        time.sleep(0.5)
    heap.append(live_heap_mb(fleet.group()))
    code = fleet.stop()
    if code != 0:
        fleet.given_up.append(f"the last driver ended with exit code {code}")
    fleet.listen()
    return heap


def judged(fleet: Fleet, fed: Mapping[str, int]) -> tuple[list[str], int]:
    """What ``verify`` says after a last run: the violations, and the records read again.

    ``fed`` are the records that Kafka has acknowledged, by pipeline.
    """
    code, _ = fleet.run_command("run", "--once")
    violations = [] if code == 0 else [f"the last run: exit code {code}"]
    code, found = fleet.run_command("verify")
    proofs: list[dict[str, Any]] = found["pipelines"] if found else []
    violations += [f"{each['name']}: {each['problems']}" for each in proofs if not each["ok"]]
    if code != 0 and not violations:
        violations.append(f"verify: exit code {code}")
    read = {str(each["name"]): int(each["records"]) for each in proofs}
    return violations + differing(fed, read), sum(read.values())


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Run a soak to its end."""
    whole_s = asked.minutes * 60
    events = schedule(asked.minutes, asked.pipelines, asked.seed)
    print(f"all of it is in {folder}", flush=True)
    with Broker(folder / "kafka", settings=PATIENT) as broker:
        fleet = Fleet(folder, broker, asked.pipelines)
        try:
            feed = Feed(fleet, asked.seed)
            with sampled(fleet.group) as samples, repeating(EVERY_S, feed.turn) as faults:
                heap = soak(fleet, events, whole_s)
            violations, read = judged(fleet, feed.records)
        finally:
            if fleet.group():
                fleet.kill()
    rise = growth(samples, whole_s)
    violations += [*fleet.given_up, *grown(rise)]
    violations += [f"the feed ended by itself: {each!r}" for each in faults]
    if asked.picture:
        asked.picture.write_text(picture(samples, events, whole_s), encoding="utf-8")
    facts = {
        "pipelines": asked.pipelines,
        "minutes": asked.minutes,
        "records": feed.records.total(),
        "read_again": read,
        "events": Counter(each.what.value for each in events),
        "mb_at_most": round(max(each.mb for each in samples)),
        "growth": round(rise, 3),
        "live_heap_mb": [round(each) for each in heap],
        "given_up": len(fleet.given_up),
    }
    return facts, violations


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--pipelines", type=int, default=40)
    options.add_argument("--picture", type=Path)
    sys.exit(command(campaign, options))
