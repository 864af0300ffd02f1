"""The quarantine of a table in a folder: files that tasks write, and the driver commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rivermouth.debug.failpoints import reach
from rivermouth.protocol.commits import CommitPlan
from rivermouth.write.files.apart import LEAVES, Apart
from rivermouth.write.files.file import DataFile, Folder
from rivermouth.write.files.known import Definition
from rivermouth.write.files.statistics import leaves_of
from rivermouth.write.files.table import Alone, FilesTable


class QuarantineFiles:
    """The quarantine at ``path``, which may not exist yet, for one pipeline.

    ``reasons`` say what the codes of its records mean. ``alone``: see ``FilesTable``.
    """

    def __init__(
        self, path: str, pipeline: str, reasons: Mapping[str, str], alone: Alone = lambda act: act()
    ) -> None:
        self._path, self._pipeline, self._reasons, self._alone = path, pipeline, reasons, alone
        self._table = FilesTable(path, pipeline, alone)

    def definition(self) -> Definition | None:
        """What the log says of the table now; None: there is none yet."""
        if not self._table.exists:
            self._table = FilesTable(self._path, self._pipeline, self._alone)  # it may come anew
            return None
        self._table.newest()
        return self._table.definition()

    def apart(self, plan: CommitPlan, table: Definition | None) -> Apart:
        """Where the tasks of the plan's batch put bad records; ``table``: see ``definition``."""
        return Apart(
            folder=folder_of(self._path, table),
            commit=plan.commit,
            pipeline=plan.draft.pipeline,
            sequence=plan.sequence,
            reasons=dict(self._reasons),
        )

    def commit(self, files: Sequence[DataFile], plan: CommitPlan) -> None:
        """Let these files count, if there are any. Raises BatchFailed."""
        if not files:
            return
        self._table.newest()
        self._table.append(files, f"rivermouth quarantine of commit {plan.commit}")
        self._table.keep_up()
        reach("P12")


def folder_of(path: str, table: Definition | None) -> Folder:
    """The folder of a table; None: of a quarantine that does not exist yet."""
    if table is None:
        return Folder(path, LEAVES, tight=False)
    return Folder(path, leaves_of(table.schema, table.indexed), tight=table.tight)
