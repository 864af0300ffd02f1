"""``python -m tests.faults.campaign --rounds N --seed S [--tally FILE] [--minutes M]``.

Prints its seed first, a line per round and end of a world, and last a line of JSON. The same
tally goes on where it was stopped. ``--at "java rename 7"`` or ``--at P16``, as often as wanted,
kills at these calls and points in place of all kinds. Exit code 1 where anything was violated;
that world's folder is kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.campaign.calls import library
from tests.faults.campaign.campaign import ROUNDS_OF_A_WORLD, Campaign
from tests.faults.campaign.plan import CALLS, POINTS
from tests.faults.campaign.tally import Tally


def main() -> int:
    """Run a campaign to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--tally", type=Path)
    parser.add_argument("--minutes", type=float, default=24 * 60.0)
    parser.add_argument(
        "--at", action="append", default=[], choices=(*CALLS, *POINTS), metavar="CALL"
    )
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-torture-"))
    file = asked.tally or folder / "tally.json"
    tally = Tally.load(file, asked.seed)
    try:
        preloaded = library(folder)
    except RuntimeError as missing:
        print(missing, file=sys.stderr)
        return 2
    until = time.monotonic() + asked.minutes * 60
    while tally.rounds < asked.rounds and not tally.violations and time.monotonic() < until:
        Campaign(folder, tally, preloaded, asked.at).world(
            min(asked.rounds - tally.rounds, ROUNDS_OF_A_WORLD), until
        )
        tally.save(file)
    for violation in tally.violations:
        print(f"VIOLATION {violation}", flush=True)
    print(tally.line())
    if not tally.violations:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
