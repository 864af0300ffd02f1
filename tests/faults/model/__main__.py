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
from tests.faults.model.configurations import PROTOCOL, small
from tests.faults.model.explore import Configuration, Explored, explore
from tests.faults.model.in_stores import STORES
from tests.faults.model.removals import REMOVALS, Removal

EVERY = (*PROTOCOL, *BOTH_WAYS, *STORES)


def main() -> int:
    """Explore, print, and say whether all is as it must be."""
    parser = argparse.ArgumentParser(prog="tests.faults.model", description="Explore the protocol")
    parser.add_argument("--small", action="store_true", help="fewer faults, fewer records")
    parser.add_argument("names", nargs="*", help="configurations and guards; all where none")
    asked = parser.parse_args()
    began = time.process_time()
    found = [
        _explored(small(each) if asked.small else each)
        for each in EVERY
        if not asked.names or each.name in asked.names
    ]
    removals = [each for each in REMOVALS if not asked.names or each.name in asked.names]
    lengths = {each.name: _without(each) for each in removals}
    states = sum(each.states for each in found)
    violations = sum(bool(each.violation) for each in found)
    seconds = round(time.process_time() - began, 1)
    summary = {"states": states, "seconds": seconds, "violations": violations, "guards": lengths}
    print(json.dumps(summary))
    return 1 if violations or 0 in lengths.values() else 0


def _explored(configuration: Configuration) -> Explored:
    found = explore(configuration)
    said = found.violation or configuration.about
    print(f"{configuration.name:<28}{found.states:>9,} states{found.seconds:>7.1f} s   {said}")
    _print_trace(found)
    return found


def _without(removal: Removal) -> int:
    """Explore without a guard, print the harm it does, and return the length of the trace."""
    found = explore(removal.without())
    harm = found.violation or "NO HARM FOUND"
    print(f"\nwithout {removal.name}: {harm} ({len(found.trace)} steps)")
    _print_trace(found)
    return len(found.trace)


def _print_trace(found: Explored) -> None:
    """Each step, and where it leaves the drivers."""
    for number, (action, after) in enumerate(found.trace, 1):
        drivers = ", ".join(each.code or each.phase for each in after.drivers)
        print(f"  {number:>2}  {' '.join(map(str, action)):<40}  {drivers}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
