"""A driver over Spark Connect: ``python -m tests.connect.driver URL PLATFORM FILE NAME…``."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.config.platforms import SERVERLESS, platform_of
from rivermouth.local.scratch import scratch_root
from rivermouth.run.report import exit_code
from rivermouth.run.run import Run
from tests.connect.serverless import refuse
from tests.driver import Printer


def main(url: str, name: str, file: str, *names: str) -> int:
    """Run the pipelines once, to the end of their topics."""
    platform = platform_of({"RIVERMOUTH_PLATFORM": name})
    session = SparkSession.builder.remote(url).getOrCreate()
    if platform is SERVERLESS:
        refuse()
    run = Run(load(Path(file)), session, scratch_root(), continuous=False, platform=platform)
    return exit_code(run.pipelines(names, Printer(), threading.Event()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
