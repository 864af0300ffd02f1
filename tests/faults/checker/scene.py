"""A copy of a run's evidence, and hands to spoil it: how the checker itself is checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.checker.at_length import as_written, at_length
from tests.faults.checker.evidence import Evidence, Watched
from tests.faults.checker.log import Log

Row = dict[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """The evidence of a run with an append and an upsert pipeline, all of it in ``folder``."""

    folder: Path
    evidence: Evidence

    @property
    def append(self) -> Watched:
        return self.evidence.pipelines[0]

    @property
    def upsert(self) -> Watched:
        return self.evidence.pipelines[1]

    def copy(self, folder: Path) -> Scene:
        """The same, in another folder."""
        shutil.copytree(self.folder, folder)

        def moved(path: Path) -> Path:
            return folder / path.relative_to(self.folder)

        old = self.evidence
        evidence = replace(
            old,
            warehouse=moved(old.warehouse),
            pipelines=tuple(
                replace(each, table=moved(each.table), quarantine=moved(each.quarantine))
                for each in old.pipelines
            ),
            history=moved(old.history) if old.history else None,
            snapshots=moved(old.snapshots) if old.snapshots else None,
            texts=tuple(moved(each) for each in old.texts),
        )
        return Scene(folder, evidence)

    # Data files

    def files(self, table: Path) -> list[Path]:
        """The data files of the newest snapshot, in the order in which they were added."""
        log = Log(table)
        log.update()
        return [table / each.path for each in log.files]

    def rows(self, table: Path, *, superseded: bool = False) -> list[Row]:
        """All rows of the newest snapshot, or those of the files that are no longer part of it."""
        files = set(self.files(table))
        if superseded:
            files = set(table.glob("*.parquet")) - files
        return [row for file in sorted(files) for row in pq.read_table(file).to_pylist()]

    def rewrite(self, file: Path, change: Callable[[list[Row]], object]) -> None:
        """Let ``change`` have its way with the rows of a data file."""
        schema = pq.read_schema(file)
        rows = pq.read_table(file).to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema), file)

    def add_row(self, table: Path, row: Row) -> None:
        """Put a row into the newest data file."""
        self.rewrite(self.files(table)[-1], lambda rows: rows.append(row))

    def change_row(self, table: Path, which: Row, change: Callable[[Row], object]) -> None:
        """Let ``change`` have its way with one row of the newest snapshot."""
        for file in self.files(table):
            if which in pq.read_table(file).to_pylist():
                self.rewrite(file, lambda rows: change(rows[rows.index(which)]))
                return
        raise LookupError(f"no such row: {which}")

    def drop_row(self, table: Path, which: Row) -> None:
        """Take one row out of the newest snapshot."""
        for file in self.files(table):
            if which in pq.read_table(file).to_pylist():
                self.rewrite(file, lambda rows: rows.remove(which))
                return
        raise LookupError(f"no such row: {which}")

    # The log

    def actions(self, table: Path, version: int) -> list[Facts]:
        """The actions of one commit."""
        lines = _commit_file(table, version).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def write_commit(self, table: Path, version: int, actions: list[Facts]) -> None:
        """Write a commit, or write it again."""
        text = "".join(json.dumps(each) + "\n" for each in actions)
        _commit_file(table, version).write_text(text, encoding="utf-8")

    def add_commit(self, table: Path, *actions: Facts) -> int:
        """Write the next commit; return its version."""
        log = Log(table)
        log.update()
        self.write_commit(table, log.version + 1, [*actions])
        return log.version + 1

    def restore_before(self, table: Path, version: int) -> list[Facts]:
        """Undo the newest commit by a RESTORE; return the ``add`` actions that it takes away."""
        added = [each for each in self.actions(table, version) if "add" in each]
        taken = [{"remove": {"path": each["add"]["path"], "dataChange": True}} for each in added]
        info = {"operation": "RESTORE", "operationParameters": {"version": str(version - 1)}}
        self.add_commit(table, {"commitInfo": info}, *taken)
        return added

    def remove_commit(self, table: Path, version: int) -> None:
        """Take a commit out of the log."""
        _commit_file(table, version).unlink()

    def entries(self, watched: Watched) -> list[tuple[int, Facts]]:
        """The pipeline's entries, at length, with the versions they stand at."""
        return [*self._entries(watched)]

    def _entries(self, watched: Watched) -> Iterator[tuple[int, Facts]]:
        log = Log(watched.table)
        for commit in log.update():
            if f"rivermouth/{watched.name}" in commit.txns and commit.metadata:
                yield commit.version, at_length(json.loads(commit.metadata))

    def clean_entries(self, watched: Watched) -> list[tuple[int, Facts]]:
        """Those entries that cover some offsets and left nothing in quarantine."""
        held = {row["commit"] for row in self.rows(watched.quarantine)}
        return [
            (version, entry)
            for version, entry in self.entries(watched)
            if entry["commit"] not in held
            and any(until - start > 3 for *_, start, until in entry["ranges"])
        ]

    def edit_entry(
        self,
        watched: Watched,
        version: int,
        change: Callable[[Facts], object],
        txn: int | None = None,
    ) -> None:
        """Let ``change`` have its way with an entry at length; ``txn``: the version of its txn."""
        actions = self.actions(watched.table, version)
        for each in actions:
            if "commitInfo" in each:
                entry = at_length(json.loads(each["commitInfo"]["userMetadata"]))
                change(entry)
                each["commitInfo"]["userMetadata"] = json.dumps(as_written(entry))
            if "txn" in each and txn is not None:
                each["txn"]["version"] = txn
        self.write_commit(watched.table, version, actions)

    def add_entry(self, watched: Watched, entry: Mapping[str, Any], *actions: Facts) -> int:
        """Commit an entry at the end of the log, with data or without."""
        text = json.dumps(as_written(entry))
        info = {"commitInfo": {"operation": "WRITE", "userMetadata": text}}
        txn = {"txn": {"appId": f"rivermouth/{watched.name}", "version": entry["sequence"]}}
        return self.add_commit(watched.table, info, txn, *actions)

    # Lines

    def lines(self, file: Path | None) -> list[Facts]:
        """The JSON lines of a history or a reader's log."""
        text = file.read_text(encoding="utf-8") if file is not None else ""
        return [json.loads(line) for line in text.splitlines()]

    def write_lines(self, file: Path | None, lines: list[Facts]) -> None:
        """Write JSON lines."""
        if file is not None:
            text = "".join(json.dumps(each) + "\n" for each in lines)
            file.write_text(text, encoding="utf-8")


def _commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"
