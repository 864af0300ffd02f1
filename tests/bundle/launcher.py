"""What compute does before a job's script: a session stands, and knows the catalog's schemas.

    python launcher.py LOG SCHEMA,SCHEMA SCRIPT ARGUMENT...

Runs where only the job's own packages can be imported, so it imports nothing of ours.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def session_noted_in(log: str) -> SparkSession:
    """A session whose JVM writes to ``log`` what it would write to standard error."""
    errors = os.dup(2)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        return SparkSession.builder.getOrCreate()
    finally:
        os.dup2(errors, 2)
        os.close(errors)


def main() -> None:
    log, schemas, script, *arguments = sys.argv[1:]
    session = session_noted_in(log)
    for schema in filter(None, schemas.split(",")):
        session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
