"""Scripts of ``jobs/`` as they run over Spark Connect, one after another in one process:
``python -m tests.connect.jobs FILE SCRIPT…``.

The environment names the server (``SPARK_REMOTE``) and the platform. On serverless compute Spark
refuses what it refuses there.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from rivermouth.config.platforms import SERVERLESS, platform_of
from tests.connect.serverless import refuse

JOBS = Path(__file__).parents[2] / "jobs"


def main(file: str, *scripts: str) -> int:
    """Run the scripts until one does not end well; its exit code."""
    if platform_of() is SERVERLESS:
        refuse()
    for script in scripts:
        sys.argv = [script, "--config", file]
        code = int(runpy.run_path(str(JOBS / f"{script}.py"))["main"]())
        sys.stdout.write(f"{script} ended with {code}\n")
        sys.stdout.flush()
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
