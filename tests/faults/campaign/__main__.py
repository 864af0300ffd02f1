"""``python -m tests.faults.campaign --rounds N --seed S [--tally FILE]``.

Prints a line per round and end of a world. The same tally goes on where it was stopped. ``--at
"java rename 7"`` or ``--at P16``, as often as wanted, kills at these calls and points in place of
all kinds. Exit code 1 where anything was violated.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tests.faults.campaign.calls import library
from tests.faults.campaign.campaign import CHECK_EVERY, play
from tests.faults.campaign.plan import CALLS, POINTS
from tests.faults.campaign.stores import Beyond
from tests.faults.campaign.tally import Tally
from tests.faults.seeded import command


def campaign(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Worlds, one after another."""
    file = asked.tally or folder / "tally.json"
    tally, preloaded = Tally.load(file, asked.seed), library(folder)
    while tally.rounds < asked.rounds and not tally.violations:
        left = asked.rounds - tally.rounds
        if asked.beyond is not None:  # its rounds are long, and a tally is kept world by world
            left = min(left, CHECK_EVERY)
        play(folder, tally, preloaded, left, asked.at, asked.beyond)
        tally.save(file)
    return tally.facts(), tally.violations


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--tally", type=Path)
    for each, what in (
        (Beyond.STORE, "the tables are in an object store"),
        (Beyond.CLUSTER, "they are, and a cluster carries out the tasks"),
    ):
        option = f"--{each.value}"
        options.add_argument(option, action="store_const", const=each, dest="beyond", help=what)
    options.add_argument(
        "--at", action="append", default=[], choices=(*CALLS, *POINTS), metavar="CALL"
    )
    sys.exit(command(campaign, options))
