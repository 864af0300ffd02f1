"""A concurrent reader: what a user of the tables sees while a run goes on.

It writes a JSON line per snapshot, ``{"table", "version", "rows", "digest"}``: the digest is
that of all rows with where they came from, in any order. The check compares each with what
the entry at that version must have left. So no batch is seen in half, and no key goes back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from tests.faults.checker.evidence import Watched
from tests.faults.checker.ledger import Ledger, Node
from tests.faults.checker.log import Log, Stale
from tests.faults.checker.rows import FileSums
from tests.faults.checker.verdict import Fault, Finding

Expect = Callable[[Node | None], "tuple[int, int] | None"]


class SnapshotReader:
    """``with SnapshotReader(pipelines, file):`` reads until the end of the block."""

    def __init__(self, pipelines: Sequence[Watched], file: Path, pause_s: float = 0.1) -> None:
        self._views = [_View(each) for each in {each.table: each for each in pipelines}.values()]
        self._file = file
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="snapshot-reader")

    def __enter__(self) -> SnapshotReader:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.poll()

    def poll(self) -> None:
        """Read each table once, and note what is new."""
        with self._file.open("a", encoding="utf-8") as file:
            for view in self._views:
                seen = view.look()
                if seen is not None:
                    file.write(json.dumps(seen) + "\n")

    def _go_on(self) -> None:
        while not self._stop.wait(self._pause_s):
            self.poll()


class _View:
    """The newest snapshot of one table, as a reader comes upon it."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._begin()

    def _begin(self) -> None:
        self._log = Log(self._watched.table)
        self._sums = FileSums(self._watched)

    def look(self) -> Mapping[str, object] | None:
        """The newest snapshot; None if it is known or gone before it was read."""
        try:
            if not self._log.update():
                return None
            rows, digest = self._sums.of(self._log.files)
        except Stale:
            self._begin()
            return None
        except (FileNotFoundError, pa.ArrowException):
            return None  # VACUUM, or a table that is being removed: look again
        return {
            "table": _name(self._watched.table),
            "version": self._log.version,
            "rows": rows,
            "digest": f"{digest:x}",
        }


class SnapshotLog:
    """A reader's lines; ``update`` reads those that are new."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read = 0
        self._seen: dict[str, list[tuple[int, int, int]]] = {}

    def update(self) -> None:
        """Read on to the last whole line."""
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    facts = json.loads(line)
                    snapshot = (facts["version"], facts["rows"], int(facts["digest"], 16))
                    self._seen.setdefault(facts["table"], []).append(snapshot)

    def judge(self, table: Path, ledger: Ledger, expect: Expect) -> Iterator[Finding]:
        """Compare each snapshot of a table with what its entries must have left by then."""
        newest = -1
        for version, *found in self._seen.get(_name(table), []):
            where = f"{_name(table)} version {version}"
            if version < newest:
                yield Finding(Fault.TORN, where, f"seen after version {newest}")
            newest = version
            if version > ledger.version:
                yield Finding(Fault.TORN, where, "a reader saw it, the log does not know it")
            if not ledger.knows(version):
                continue
            due = expect(ledger.at(version))
            if due is not None and due != tuple(found):
                yield Finding(Fault.TORN, where, f"{found[0]} rows, {due[0]} were due, or others")


def _name(table: Path) -> str:
    return f"{table.parent.name}.{table.name}"
