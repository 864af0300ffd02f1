"""A campaign as a command: it prints its seed first, and last what came of it as a line of JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Campaign = Callable[[Path, argparse.Namespace], tuple[Mapping[str, Any], Sequence[str]]]
"""Plays in a folder, as the options say; returns the facts of the last line, and violations."""


def command(campaign: Campaign, parser: argparse.ArgumentParser) -> int:
    """Play a campaign, and return the exit code: 1 where anything was violated.

    Then its folder is kept. ``--seed`` is added to the options of ``parser``.
    """
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked, began = parser.parse_args(), time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-campaign-"))
    facts, violations = campaign(folder, asked)
    for each in violations[:50]:
        print(f"VIOLATION {each}", flush=True)
    if violations:
        print(f"all of it is in {folder}")
    seconds = round(time.monotonic() - began)
    summary = {"seed": asked.seed, "seconds": seconds, **facts, "violations": len(violations)}
    print(json.dumps(summary))
    if not violations:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if violations else 0
