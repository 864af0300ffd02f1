"""``python -m tests.faults.model``: explore all configurations, then take each guard out.

One line each, in seconds of the processor; the last line is JSON. Exits with 1 where an
invariant falls, or where a missing guard does no harm. ``--small`` does the same with fewer
faults and records; names of configurations or guards limit it to those.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.faults.model.both_ways import BOTH_WAYS
from tests.faults.model.both_ways_removals import BOTH_WAYS_REMOVALS
from tests.faults.model.configurations import PROTOCOL, small
from tests.faults.model.deliveries import DELIVERIES
from tests.faults.model.delivery_removals import DELIVERY_REMOVALS
from tests.faults.model.explore import Configuration, Explored, explore
from tests.faults.model.removals import REMOVALS, Removal
from tests.faults.model.words import in_words

EVERY = (*PROTOCOL, *BOTH_WAYS, *DELIVERIES)
EVERY_REMOVAL = (*REMOVALS, *BOTH_WAYS_REMOVALS, *DELIVERY_REMOVALS)


def main() -> int:
    """Explore, print, and say whether all is as it must be."""
    parser = argparse.ArgumentParser(prog="tests.faults.model", description="Explore the protocol")
    parser.add_argument("--small", action="store_true", help="fewer faults, fewer records")
    parser.add_argument("names", nargs="*", help="configurations and guards; all where none")
    asked = parser.parse_args()
    began = time.process_time()
    states, violations = 0, 0
    for each in EVERY:
        if asked.names and each.name not in asked.names:
            continue
        found = _explored(small(each) if asked.small else each)
        states += found.states
        violations += bool(found.violation)
    removals = [each for each in EVERY_REMOVAL if not asked.names or each.name in asked.names]
    lengths = {each.name: _without(each) for each in removals}
    seconds = round(time.process_time() - began, 1)
    summary = {"states": states, "seconds": seconds, "violations": violations, "guards": lengths}
    print(json.dumps(summary))
    return 1 if violations or 0 in lengths.values() else 0


def _explored(configuration: Configuration) -> Explored:
    found = explore(configuration)
    said = found.violation or configuration.about
    print(f"{configuration.name:<28}{found.states:>9,} states{found.seconds:>7.1f} s   {said}")
    _print_trace(configuration, found)
    return found


def _without(removal: Removal) -> int:
    """Explore without a guard, print the harm it does, and return the length of the trace."""
    found = explore(removal.without())
    harm = found.violation or "NO HARM FOUND"
    print(f"\nwithout {removal.name}: {harm} ({len(found.trace)} steps)")
    _print_trace(removal.without(), found)
    return len(found.trace)


def _print_trace(configuration: Configuration, found: Explored) -> None:
    before = configuration.first()
    for number, (action, after) in enumerate(found.trace, 1):
        print(f"  {number:>2}  {in_words(action, before, after)}")
        before = after
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
