"""Killing a process right before one of its calls that change files, by a preloaded library.

The product is not touched: ``calls.c`` stands between the process and the C library. (strace
can do it too, but stops a process at each of its calls: three to ten times slower here.)
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

CALLS = (
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "chmod",
    "create",
    "truncate",
    "write",
    "sync",
)
PROGRAMS = ("java", "python")
_SIZE = 4 * (3 + len(CALLS))


def library(folder: Path) -> Path:
    """Compile ``calls.c`` into ``folder``. Raises RuntimeError where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("a C compiler is missing: install one (Debian: apt-get install gcc)")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "calls.so"
    source = Path(__file__).with_name("calls.c")
    command = [compiler, "-O2", "-shared", "-fPIC", "-w", "-o", str(made), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return made


class CallControl:
    """The control file of one driver, shared with its JVM (``java``) and ``python``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._maps: dict[str, mmap.mmap] = {}
        for program in PROGRAMS:
            file = path.with_name(f"{path.name}.{program}")
            file.write_bytes(bytes(_SIZE))
            with file.open("r+b") as opened:
                self._maps[program] = mmap.mmap(opened.fileno(), _SIZE)

    def environment(self, preloaded: Path) -> Mapping[str, str]:
        """What a driver must be started with."""
        return {"LD_PRELOAD": str(preloaded), "TORTURE_CALLS": str(self.path)}

    def arm(self, program: str, call: str, count: int) -> None:
        """Kill the program before its ``count``-th such call from now on."""
        struct.pack_into("ii", self._maps[program], 0, 0, count)
        struct.pack_into("i", self._maps[program], 0, CALLS.index(call) + 1)

    def struck(self) -> bool:
        """Whether what was armed has killed: where the driver lives, it was a task's worker."""
        controls = (struct.unpack_from("ii", each, 0) for each in self._maps.values())
        return any(armed and left <= 0 for armed, left in controls)

    def disarm(self) -> None:
        """Let all calls pass."""
        for program in PROGRAMS:
            struct.pack_into("i", self._maps[program], 0, 0)

    def counts(self, program: str) -> dict[str, int]:
        """How often each call has been made so far."""
        values = struct.unpack_from(f"{len(CALLS)}i", self._maps[program], 12)
        return dict(zip(CALLS, values, strict=True))
