"""What the index of a table by key costs: time to build, memory, disk, and a start that finds it.

    python bench/index.py [--rows 16000000] [--keys 10000]

A generator makes a table with a random order of whole-number keys, in files of a million rows. A
process builds its index, another one starts with what is on the disk then. Each asks for random
``keys`` at last. The last line is JSON: ``build_s`` and ``start_s`` are seconds up to the first
answer, ``find_ms`` milliseconds of further ones; ``disk`` is bytes a row on the disk; ``mb`` the
memory that the process got from the system for it, and ``start_mb`` that of the second one, pages
of files included.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake
from measured import say
from peer import peak_mb

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.write.keys.index import KeyColumns, KeyIndex
from rivermouth.write.keys.runs import Shelf
from rivermouth.write.keys.settle import FirstOrder

_FILE_ROWS, _ASKED = 1_000_000, 20


def generate(table: Path, rows: int) -> None:
    """Make a table of so many keys."""
    keys = np.random.default_rng(7).permutation(rows)
    for first in range(0, rows, _FILE_ROWS):
        some = keys[first : first + _FILE_ROWS]
        found = pa.table({"id": some, "price": some % 1009})
        zstd = WriterProperties(compression="ZSTD")
        write_deltalake(str(table), found, mode="append", writer_properties=zstd)


def measure(table: Path, folder: Path, rows: int, keys: int) -> dict[str, float]:
    """Open the index, and ask it."""
    before, began, dice = peak_mb(), time.monotonic(), np.random.default_rng(1)
    types = pa.schema([("id", pa.int64()), ("price", pa.int64())])
    columns, log = KeyColumns(("id",), FirstOrder(()), types), None
    log = DeltaLog(Store.of_folder(table), files=True)
    log.follow()
    index = KeyIndex(log, columns, Shelf(folder, columns.width, columns.values.width))
    index.follow()
    seconds = list[float]()
    for _ in range(_ASKED + 1):
        asked = dice.integers(0, rows, keys).astype(np.uint64).reshape(-1, 1) ^ np.uint64(1 << 63)
        found = index.find(asked)
        if not found.there.all():
            raise SystemExit("keys are missing")
        seconds.append(time.monotonic() - began)
    spent = np.diff(seconds) * 1000
    return {"s": seconds[0], "find_ms": statistics.median(spent), "mb": peak_mb() - before}


def main() -> None:
    """Run it; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.folder:
        table, folder = asked.folder / "table", asked.folder / "index"
        print(json.dumps(measure(table, folder, asked.rows, asked.keys)))
        return
    folder = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    generate(folder / "table", asked.rows)
    say(f"a table of {asked.rows:,} rows")
    command = [sys.executable, *sys.argv, "--folder", str(folder)]
    build, start = (json.loads(subprocess.check_output(command)) for _ in range(2))
    disk = sum(each.stat().st_size for each in (folder / "index").iterdir())
    shutil.rmtree(folder)
    found = {
        "build_s": build["s"],
        "start_s": start["s"],
        "find_ms": build["find_ms"],
        "disk": disk / asked.rows,
        "mb": build["mb"],
        "start_mb": start["mb"],
    }
    print(json.dumps({name: round(each, 2) for name, each in found.items()}))


if __name__ == "__main__":
    main()
